#!/usr/bin/env python3
"""The rooms include each other in one direction only (docs/architecture.md); and the check that says so can fail."""

import pathlib
import sys
import tempfile
import unittest

from include_direction import kFolders, room_of, violations

kRoot = pathlib.Path(__file__).resolve().parents[2]


def check(files):
    """The violations in a tree of {path: text}, as "path:line: reason"."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return [f"{path}:{line}: {reason}" for path, line, reason in violations(folder)[0]]


def arrow(above, below):
    """The violations when the file `above` includes the file `below`, on its second line."""
    return check({below: "", above: f'#pragma once\n#include "{below}"\n'})


class TheCheck(unittest.TestCase):
    def test_a_room_may_include_itself_and_what_stands_below_it(self):
        for above, below in [
            ("base/a.h", "base/b.h"), ("lsp/a.cpp", "base/b.h"),
            ("engine/engine.cpp", "engine/tokenizer/tokenizer.h"),
            ("engine/tokenizer/a.cpp", "engine/model/gguf.h"),
            ("daemon/prompt/a.cpp", "engine/tokenizer/tokenizer.h"),
            ("daemon/prompt/a.cpp", "engine/types.h"), ("daemon/prompt/a.cpp", "daemon/text/a.h"),
            ("daemon/completion/a.cpp", "engine/engine.h"),
            ("daemon/completion/fit/a.cpp", "daemon/completion/request.h"),
            ("daemon/completion/generate/a.cpp", "daemon/completion/fit/a.h"), ("daemon/server/a.cpp", "lsp/a.h"),
            ("daemon/client/a.cpp", "daemon/config/a.h"), ("daemon/cli/a.cpp", "daemon/client/a.h"),
            ("daemon/cli/main.cpp", "daemon/cli/a.h"), ("net/get/a.cpp", "daemon/models/a.h"),
            ("net/program/a.cpp", "net/http/a.h"), ("net/program/a.cpp", "net/remote/a.h"),
        ]:
            self.assertEqual(arrow(above, below), [], f"{above} -> {below}")

    def test_each_forbidden_arrow_is_named_with_its_file_and_line(self):
        for above, below in [
            ("base/a.h", "lsp/a.h"), ("engine/engine.cpp", "daemon/prompt/planner.h"),
            ("engine/tokenizer/a.cpp", "engine/engine.h"), ("lsp/a.cpp", "engine/types.h"),
            ("engine/a.cpp", "lsp/a.h"), ("engine/a.cpp", "cache_store/a.h"),
            ("lsp/a.cpp", "cache_store/a.h"), ("cache_store/a.cpp", "lsp/a.h"),
            ("cache_store/a.cpp", "engine/engine.h"), ("daemon/text/a.cpp", "lsp/a.h"),
            ("daemon/prompt/a.cpp", "engine/engine.h"), ("daemon/prompt/a.cpp", "engine/model/gguf.h"),
            ("daemon/completion/a.cpp", "lsp/a.h"),
            ("daemon/completion/fit/a.cpp", "engine/types.h"), ("daemon/completion/fit/a.cpp", "engine/engine.h"),
            ("daemon/completion/fit/a.cpp", "daemon/completion/completion.h"),
            ("daemon/completion/generate/a.cpp", "daemon/completion/documents/documents.h"), ("daemon/completion/a.cpp", "daemon/config/a.h"),
            ("daemon/models/a.cpp", "daemon/server/a.h"), ("daemon/client/a.cpp", "daemon/server/a.h"),
            ("daemon/models/a.cpp", "lsp/a.h"), ("daemon/server/a.cpp", "daemon/client/a.h"),
            ("daemon/cli/a.cpp", "daemon/cli/main.cpp"),
            ("daemon/cli/a.cpp", "net/get/a.h"), ("daemon/server/a.cpp", "net/get/a.h"),
            ("net/get/a.cpp", "daemon/server/a.h"), ("net/get/a.cpp", "daemon/cli/a.h"),
            ("net/http/a.cpp", "daemon/server/a.h"), ("net/http/a.cpp", "engine/engine.h"),
            ("daemon/client/a.cpp", "net/http/a.h"), ("daemon/cli/a.cpp", "net/http/a.h"),
            ("net/http/a.cpp", "net/remote/a.h"), ("net/remote/a.cpp", "net/http/a.h"),
            ("net/program/a.cpp", "daemon/cli/a.h"), ("daemon/cli/a.cpp", "net/program/a.h"),
        ]:
            found = arrow(above, below)
            self.assertEqual(len(found), 1, f"{above} -> {below}")
            self.assertTrue(found[0].startswith(f"{above}:2: "), found[0])

    def test_a_forbidden_arrow_in_angle_brackets_or_by_a_relative_path_is_seen(self):
        self.assertTrue(check({"lsp/a.h": "", "base/a.cpp": "#include <lsp/a.h>\n"}))
        self.assertTrue(check({"lsp/a.h": "", "base/a.cpp": '#  include "../lsp/a.h"\n'}))

    def test_the_headers_of_a_package_stay_in_the_room_that_owns_it(self):
        for header, owner in [("sqlite3.h", "cache_store/a.cpp"),
                              ("tree_sitter/api.h", "daemon/syntax/a.cpp"),
                              ("vulkan/vulkan.h", "engine/backend/vulkan/a.cpp"),
                              ("cuda_runtime.h", "engine/backend/cuda/a.cpp"),
                              ("cuda_fp16.h", "kernels/a.cu"),
                              ("curl/curl.h", "net/get/a.cpp"), ("openssl/evp.h", "net/get/a.cpp"),
                              ("boost/beast/http.hpp", "net/http/a.cpp"),
                              ("boost/asio/ip/tcp.hpp", "net/http/a.cpp")]:
            include = f"#include <{header}>\n"
            self.assertEqual(check({owner: include}), [])
            self.assertEqual(len(check({"daemon/server/a.cpp": include})), 1, header)

    def test_a_quoted_header_that_is_no_file_and_one_outside_the_rooms_are_refused(self):
        self.assertEqual(len(check({"base/a.cpp": '#include "fmt/format.h"\n'})), 1)
        self.assertEqual(len(arrow("base/a.cpp", "tests/support/a.h")), 1)


class TheTree(unittest.TestCase):
    def test_includes_point_downwards_only(self):
        found, read = violations(kRoot)
        self.assertGreater(read, 100, "the tree's #include lines were not found")
        self.assertEqual([f"{path}:{line}: {reason}" for path, line, reason in found], [])

    def test_every_source_folder_is_a_room_or_known_to_be_none(self):
        others = {"tests", "build", "cmake", "scripts", "editors", "models", "training"}
        folders = {path.name for path in kRoot.iterdir()
                   if path.is_dir() and not path.name.startswith(".")}
        self.assertLessEqual(folders - others, set(kFolders) | {"node_modules", "docs"})
        for file in (kRoot / "daemon").rglob("*.h"):
            self.assertIsNotNone(room_of(file.relative_to(kRoot).as_posix()), f"{file} is in no room")


if __name__ == "__main__":
    sys.exit(unittest.main())
