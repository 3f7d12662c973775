"""The heads of samples: what a file imports is found in its package, and declared without bodies."""
import unittest

import support  # noqa: F401  it finds training/

from training import heads


class Heads(unittest.TestCase):
    def used(self, language: str, files: dict, path: str) -> list:
        paths = list(files)
        records = [{"path": name, "text": text, "language": language, "package": "p"} for name, text in files.items()]
        package = heads.Package(range(len(paths)), paths, records.__getitem__)
        return [paths[number] for number in package.uses(records[paths.index(path)])]

    def test_imports_are_found_in_import_order(self):
        for language, main, text, others in (
                ("c", "x/src/main.c", '#include <stdio.h>\n#include "b.h"\n#include "lib/a.h"\n', ["x/src/b.h", "x/lib/a.h"]),
                ("python", "p/pkg/main.py", "import os\nfrom .two import f\nfrom pkg.one import g\n", ["p/pkg/two.py", "p/pkg/one.py"]),
                ("python", "p/pkg/main.py", "from . import two\n", ["p/pkg/__init__.py"]),
                ("go", "m/cmd/main.go", 'import (\n\t"io"\n\t"example.org/m/x/store"\n)\n', ["m/x/store/a.go"]),
                ("rust", "c/src/main.rs", "use std::io;\nuse crate::model::Shape;\nmod rows;\n", ["c/src/model.rs", "c/src/rows.rs"]),
                ("typescript", "n/src/main.ts", "import { a } from './b';\nconst c = require('../lib/c');\n", ["n/src/b.ts", "n/lib/c.js"]),
                ("java", "j/org/x/Main.java", "import java.util.List;\nimport org.x.Rows;\n", ["j/org/x/Rows.java"]),
                ("lua", "l/main.lua", 'local a = require "net.http"\n', ["l/net/http.lua"]),
                ("shell", "s/run.sh", '. "$DIR/common.sh"\n', ["s/common.sh"])):
            with self.subTest(language=language, text=text):
                self.assertEqual(self.used(language, {name: "" for name in others} | {main: text, "io/io.go": ""}, main), others)

    def test_of_several_files_of_a_name_the_nearest_is_meant(self):
        files = {"a/one/util.h": "", "a/two/util.h": "", "a/two/main.c": '#include "util.h"\n'}
        self.assertEqual(self.used("c", files, "a/two/main.c"), ["a/two/util.h"])

    def test_declarations_have_no_bodies(self):
        for language, text, expected in (
                ("python", "import os\n\nclass Stack(Base):\n    def push(self,\n             item: int) -> None:\n        return deep(1)\n\ndef free():\n    x = 1\n",
                 "class Stack(Base)\n  def push(self, item: int) -> None\ndef free()\n"),
                ("c", "struct point {\n  int x;\n  int y;\n};\nint add(int a, int b) {\n  return inner(a) + b;\n}\n",
                 "struct point\n  int x;\n  int y;\nint add(int a, int b)\n"),
                ("go", "package p\n\ntype Row struct {\n\tID int\n}\n\nfunc (r Row) Name() string {\n\treturn fmt.Sprint(r)\n}\n",
                 "type Row struct\n  ID int\nfunc (r Row) Name() string\n"),
                ("rust", "pub struct Row {\n    pub id: u32,\n}\n\nimpl Row {\n    pub fn name(&self) -> String {\n        self.id.to_string()\n    }\n}\n",
                 "pub struct Row\n  pub id: u32,\nimpl Row\n  pub fn name(&self) -> String\n"),
                ("typescript", "export class Row {\n  name(a: string): string {\n    return call(a);\n  }\n}\nexport const LIMIT = 3;\n",
                 "export class Row\n  name(a: string): string\nexport const LIMIT = 3\n"),
                ("java", "public class Row {\n    public int id() {\n        return 1;\n    }\n}\n", "public class Row\n  public int id()\n"),
                ("lua", "local function f(a, b)\n  return g(a)\nend\n", "local function f(a, b)\n"),
                ("shell", "start() {\n  echo a\n}\n", "start()\n")):
            with self.subTest(language=language):
                self.assertEqual(heads.declarations(text, language), expected)


if __name__ == "__main__":
    unittest.main()
