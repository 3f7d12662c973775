#pragma once

namespace efimd::store {

// The store on disk
//
//   kv/lock         flock()ed by the process that uses the store
//   kv/store.db     SQLite, WAL: the tables below; of a document's text only what its note has
//   kv/N.kv         the arena of row N of `arenas` (arena.h has its bytes)
//
//   ST-1  A slot is written and synced before its row is. A row whose checksum does not fit its
//         slot is a miss and is removed.
//   ST-2  Files are 0600 in a 0700 folder. Nothing of an excluded document is ever written; the
//         daemon's exclusions decide which those are.
//   ST-3  A part with another schema, damage or an arena of another generation is started over, and
//         the log says so once.
//
// If power fails, what was being written is lost, and nothing before it: WAL with synchronous=FULL.
// A row without its slot's bytes is a miss by ST-1.

/// PRAGMA user_version. Any other, higher or lower, is started over, because this is a cache.
inline constexpr int kSchemaVersion = 1;

inline constexpr char kSchema[] = R"sql(
-- One file of slots for each model and form of KV.
CREATE TABLE arenas (
  id         INTEGER PRIMARY KEY,
  model      BLOB NOT NULL,     -- Digest (16 bytes, this machine's order) of the model's file
  model_name TEXT NOT NULL,     -- for people
  kv_type    TEXT NOT NULL,     -- element type and layout
  page_bytes INTEGER NOT NULL,
  nonce      BLOB NOT NULL,     -- Digest; the same as in the arena's header
  UNIQUE (model, kv_type, page_bytes)
);

-- Documents whose pages may be on disk.
CREATE TABLE sources (
  id        INTEGER PRIMARY KEY,
  uri       TEXT NOT NULL UNIQUE,
  pinned    INTEGER NOT NULL DEFAULT 0,
  last_use  INTEGER NOT NULL DEFAULT 0,  -- counts uses: clocks jump
  used_at_s INTEGER NOT NULL DEFAULT 0   -- seconds since 1970, for people
);

-- Pages: digest -> slot.
CREATE TABLE pages (
  id       INTEGER PRIMARY KEY,  -- arena << 32 | slot
  digest   BLOB NOT NULL UNIQUE, -- KV-1
  parent   BLOB,                 -- digest of the page before it, NULL for a first one
  checksum INTEGER NOT NULL,     -- XXH3-64 of the slot's page, seeded with that of id, digest, parent
  last_use INTEGER NOT NULL
);

-- Whose text a page holds; several where documents begin alike. A page without a source is removed.
CREATE TABLE page_sources (
  page   INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
  source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
  PRIMARY KEY (page, source)
) WITHOUT ROWID;
CREATE INDEX page_sources_by_source ON page_sources (source);

-- Where the user was in a document: byte offsets and digests, written by the daemon. Also token ids of
-- what its prompt shows of other files, which are as good as text.
CREATE TABLE notes (
  source INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
  model  BLOB NOT NULL,
  note   TEXT NOT NULL,
  PRIMARY KEY (source, model)
) WITHOUT ROWID;

CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
)sql";

/// Tables that came later. A database without them gets them and keeps its pages.
inline constexpr char kLaterSchema[] = R"sql(
-- Documents that are kept longer than others, because the user returns to them.
CREATE TABLE IF NOT EXISTS returns (
  source INTEGER PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
  longer INTEGER NOT NULL  -- visits
);
)sql";

}  // namespace efimd::store
