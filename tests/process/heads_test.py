"""The head (A-13), with the real binary and the bundled model: what another file declares stands in prompts, and not where the user
does not want it."""

import unittest

from user import UserTest, poll

kText = '#include "shape.h"\n\nint main() {\n  Shape shape;\n  int grown = area(shape);\n  return grown;\n}\n' + "".join(
    f"\nint twice_{number}(int value) {{\n  return 2 * value + {number};\n}}\n" for number in range(12))
kLine, kEnd = 4, len("  int grown = area(shape);")


class HeadsTest(UserTest):
    def setUp(self):
        super().setUp()
        self.root = self.folder / "project"
        (self.root / ".git").mkdir(parents=True)
        (self.root / "shape.h").write_text("struct Shape {\n  int sides;\n};\nint area(const Shape& shape);\n")
        self.file = self.root / "main.cpp"
        self.file.write_text(kText)

    def opened(self):
        """An editor with the file, and its receipts up to the first of the whole file."""
        editor = self.editor()
        editor.initialize(receipts=True)
        editor.open(self.file.as_uri(), kText)
        receipts = [editor.complete_when_loaded(self.file.as_uri(), kLine, kEnd)[1]]

        def is_whole():
            if receipts[-1].get("window", {}).get("view") == "full":
                return True
            receipts.append(editor.complete(self.file.as_uri(), kLine, kEnd)[1])
            return False

        poll(is_whole, "the whole file in a prompt")
        return editor, receipts

    def tokens_held(self):
        return sum(file["tokensDevice"] for file in self.status()["files"])

    def test_a_head_comes_in_idle_time_and_goes_with_the_setting(self):
        editor, receipts = self.opened()
        # The anchor with the head is made beside the one without, and shares nothing with it. Typing would only hold it up.
        # On a slow machine the first prompt of the whole file has the head already.
        poll(lambda: "head" in receipts[-1] or self.tokens_held() >= 2 * receipts[-1]["promptTokens"],
             f"the head's tokens, after {receipts}")

        def is_shown():
            self.typed = getattr(self, "typed", 0) + 1
            editor.change(self.file.as_uri(), self.typed + 1, ((kLine, kEnd - 1 + self.typed), (kLine, kEnd - 1 + self.typed), " "))
            return editor.complete(self.file.as_uri(), kLine, kEnd + self.typed)[1].get("head")

        head = poll(is_shown, "a prompt with the head")
        self.assertEqual(head["files"], 1)
        self.assertIn("shape.h (imported as", self.run_efimd("status", "--why").stdout)
        editor.leave()
        self.assertEqual(self.run_efimd("stop").returncode, 0)
        # What was noted of the file has the head.
        (self.folder / "config.toml").write_text(self.config + '[context]\nfiles = "off"\n')
        editor, receipts = self.opened()
        self.assertEqual([receipt["head"] for receipt in receipts if "head" in receipt], [])
        self.assertNotIn("shape.h", self.run_efimd("status", "--why").stdout)


if __name__ == "__main__":
    unittest.main()
