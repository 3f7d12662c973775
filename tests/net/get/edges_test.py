#!/usr/bin/env python3
"""efimd model get where a user or a network leaves the usual way: what is lost, what is said, and what is loaded in vain."""

import os
import pty
import subprocess
import unittest

import hub_server
from get_case import GetTest, kName, kFile, kPatienceS


class WhatIsSaid(GetTest):
    def test_an_interruption_at_the_question_is_an_answer(self):
        leader, terminal = pty.openpty()
        self.addCleanup(os.close, leader)
        process = subprocess.Popen(self.command(kName), env=self.environment, stdin=terminal, stderr=terminal,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        os.close(terminal)
        shown = b""
        while b"[Y/n]" not in shown:
            shown += os.read(leader, 4096)
        process.send_signal(2)
        self.assertEqual(process.wait(kPatienceS), 130)
        self.assertEqual(self.hub.asked_for_content(), [])

    def refused(self, *arguments, **environment):
        done = self.run_get(*arguments, **environment)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr


if __name__ == "__main__":
    unittest.main()
