#include "net/get/cached.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "daemon/models/hub_folder.h"
#include "net/get/partial_file.h"

namespace efimd::get {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kKnownMax = 1000;

Result<void> make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return tl::unexpected(system_error(folder, error.value()));
  return {};
}

/// A file that is there whole or not at all.
Result<void> put_text(const fs::path& file, const std::string& text) {
  const fs::path next = file.string() + "." + std::to_string(::getpid()) + ".new";
  std::ofstream stream(next, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  std::error_code error;
  if (!stream.fail()) fs::rename(next, file, error);
  if (!stream.fail() && !error) return {};
  const int code = error ? error.value() : errno;
  fs::remove(next, error);
  return tl::unexpected(system_error(file, code));
}

}  // namespace

CachedRepository::CachedRepository(fs::path hub, const std::string& repository)
    : hub_(std::move(hub)),
      folder_(hub_ / service::repository_folder(repository)),
      name_(repository) {}

fs::path CachedRepository::blob(const HubFile& file) const { return folder_ / "blobs" / file.hash; }

fs::path CachedRepository::lock(const HubFile& file) const {
  return hub_ / ".locks" / folder_.filename() / (file.hash + ".lock");
}

fs::path CachedRepository::path(const std::string& commit, const std::string& file) const {
  return folder_ / "snapshots" / commit / file;
}

Result<void> CachedRepository::make_folders() const {
  for (const fs::path& each :
       {folder_ / "blobs", folder_ / "refs", hub_ / ".locks" / folder_.filename()})
    if (auto made = make_folder(each); !made) return made;
  return {};
}

bool CachedRepository::has(const std::string& commit, const HubFile& file) const {
  std::error_code error;
  if (fs::file_size(blob(file), error) == file.bytes && !error) return true;
  return fs::file_size(path(commit, file.path), error) == file.bytes && !error;
}

Result<void> CachedRepository::link(const std::string& commit, const HubFile& file) const {
  const fs::path name = path(commit, file.path);
  const fs::path content = blob(file);
  if (auto made = make_folder(name.parent_path()); !made) return made;
  std::error_code error;
  if (!fs::exists(content, error) && fs::exists(name, error)) return {};  // put there without links
  if (fs::equivalent(name, content, error) && !error) return {};
  const fs::path target = content.lexically_relative(name.parent_path());
  const fs::path next = name.string() + "." + std::to_string(::getpid()) + ".new";
  fs::create_symlink(target, next, error);
  if (!error) {
    fs::rename(next, name, error);
    if (error) return tl::unexpected(system_error(name, error.value()));
    return {};
  }
  fs::rename(content, name, error);
  if (error) return tl::unexpected(system_error(name, error.value()));
  return {};
}

Result<void> CachedRepository::refer(const std::string& revision, const std::string& commit) const {
  if (revision == commit || service::referred_commit(folder_, revision) == commit) return {};
  return put_text(folder_ / "refs" / revision, commit);
}

HubRepository CachedRepository::known(const std::string& revision) const {
  HubRepository repository;
  repository.name = name_;
  repository.commit = service::referred_commit(folder_, revision);
  if (repository.commit.empty()) return repository;
  const fs::path snapshot = folder_ / "snapshots" / repository.commit;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(snapshot, error), end;
       !error && entry != end && repository.files.size() < kKnownMax; entry.increment(error)) {
    std::error_code unreadable;
    if (!entry->is_regular_file(unreadable)) continue;
    const std::uintmax_t bytes = entry->file_size(unreadable);
    if (!unreadable)
      repository.files.push_back(
          {entry->path().lexically_relative(snapshot).generic_string(), bytes, ""});
  }
  return repository;
}

}  // namespace efimd::get
