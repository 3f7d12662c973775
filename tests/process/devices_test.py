"""Which device the model runs on, as a user sees it: by name, by what is there, and without any driver."""

import json
import os
import subprocess
import unittest

from user import UserTest, kCursor, kEfimd, kText, poll

kHideDrivers = os.environ["EFIMD_HIDE_DRIVERS"]  # set by ctest


class DeviceTest(UserTest):
    def complete(self, **environment):
        path = self.folder / "fibonacci.py"
        path.write_text(kText)
        place = f"{path}:{kCursor[0] + 1}:{kCursor[1] + 1}"
        done = self.run_efimd("complete", place, "--max-tokens", 8, "--stop", "none", **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def device(self):
        return self.status()["device"]

    def needs_vulkan(self):
        doctor = self.run_efimd("doctor", "--json", EFIMD_DEVICE="vulkan")
        vulkan = [found for found in json.loads(doctor.stdout)["findings"] if found["subject"] == "vulkan"][0]
        if vulkan["level"] != "good":
            self.skipTest(vulkan["what"])


class DevicesTest(DeviceTest):
    config = "[device]\nidle_release_s = 1\n"

    def test_the_binary_needs_no_driver(self):
        needed = subprocess.run(["readelf", "-d", kEfimd], capture_output=True, text=True, check=True).stdout
        for library in ("libcuda", "libvulkan", "libnv"):
            self.assertNotIn(library, needed)

    def test_without_libcuda_and_libvulkan_it_completes_on_the_cpu_and_says_why(self):
        self.assertTrue(self.complete(LD_PRELOAD=kHideDrivers).strip())
        device = self.device()
        self.assertEqual(device["kind"], "cpu")
        self.assertIn("libvulkan.so.1 is not installed", device["reason"])
        doctor = self.run_efimd("doctor", LD_PRELOAD=kHideDrivers)
        self.assertEqual(doctor.returncode, 0, doctor.stderr)
        self.assertIn("libvulkan.so.1 is not installed", doctor.stdout)

    def test_a_gpu_that_was_asked_for_and_is_not_there_gives_way_with_the_reason(self):
        expected = self.complete(EFIMD_DEVICE="vulkan", LD_PRELOAD=kHideDrivers)
        self.assertTrue(expected.strip())
        self.assertEqual(self.device()["kind"], "cpu")
        self.assertIn("vulkan: ", self.device()["reason"])
        doctor = self.run_efimd("doctor", "--json", EFIMD_DEVICE="vulkan", LD_PRELOAD=kHideDrivers)
        wrong = [found for found in json.loads(doctor.stdout)["findings"] if found["level"] == "wrong"]
        self.assertEqual([found["subject"] for found in wrong], ["vulkan"])
        self.assertTrue(wrong[0]["remedy"])

    def test_the_cpu_by_name(self):
        self.complete(EFIMD_DEVICE="cpu")
        self.assertEqual((self.device()["kind"], self.device()["reason"]), ("cpu", "configured"))

    def completes(self, expected, **environment):
        """The whole suggestion, sooner or later: on a busy machine its time may be over before it is whole."""
        poll(lambda: self.complete(**environment) == expected, f"the suggestion {expected!r}")

    def test_vulkan_by_name_runs_on_whatever_vulkan_there_is(self):
        self.needs_vulkan()
        on_cpu = self.complete(EFIMD_DEVICE="cpu")
        self.run_efimd("stop")
        self.completes(on_cpu, EFIMD_DEVICE="vulkan")
        self.assertEqual(self.device()["kind"], "vulkan")
        self.assertEqual(self.device()["reason"], "configured")
        poll(lambda: self.status()["memory"]["device"]["usedBytes"] == 0, "idle: the GPU's memory is given back")
        self.assertGreater(self.status()["memory"]["host"]["usedBytes"], 0, "what was on it is in the host's memory")
        self.completes(on_cpu, EFIMD_DEVICE="vulkan")
        self.assertEqual(self.device()["kind"], "vulkan")
        self.assertGreater(self.status()["reuse"]["reusedTokens"], 0)


class SmallGpuTest(DeviceTest):
    config = "[device]\nmemory_mb = 24\n[cache]\nmemory_mb = 16\n"

    def test_layers_that_do_not_fit_run_on_the_cpu(self):
        self.needs_vulkan()
        on_cpu = self.complete(EFIMD_DEVICE="cpu")
        self.run_efimd("stop")
        self.assertEqual(self.complete(EFIMD_DEVICE="vulkan"), on_cpu)
        self.assertEqual(self.device()["kind"], "vulkan")
        self.assertRegex(self.device()["name"], r"; [1-5] of 6 layers, the others on ")
        self.assertRegex(self.device()["reason"], r"vulkan: .* has 24 MiB; the model takes [0-9]+ MiB")


if __name__ == "__main__":
    unittest.main()
