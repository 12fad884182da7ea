"""Tests of count.py with a measurement that is made up."""
import contextlib, io, os, sys, tempfile, unittest
from unittest import mock

import count

START = 1_000_000  # what the start of a program takes


class Count(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "counts.txt")
        count.write_counts(self.path, {"yield2": 200.0, "fib": 60.0})

    def run_with(self, costs, *arguments):
        """Exit status and output, when a workload's operation takes `costs` instructions."""
        def measured(bench, clock, workload, n):
            return START + costs[workload] * count.OPERATIONS.get(workload, int)(n)
        output = io.StringIO()
        command = ["count.py", "bench", "--only", ",".join(costs), *arguments]
        with mock.patch.multiple(count, COUNTS=self.path, run=measured), mock.patch("subprocess.run"), \
                mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(output):
            try:
                count.main()
                status = 0
            except SystemExit as end:
                status = end.code
        return status, output.getvalue()

    def test_the_same_count_passes(self):
        self.assertEqual(self.run_with({"yield2": 200, "fib": 60})[0], 0)

    def test_a_count_that_grew_by_six_percent_fails_and_is_named(self):
        status, output = self.run_with({"yield2": 212, "fib": 60})
        self.assertTrue(status)
        line, = [line for line in output.splitlines() if "GREW" in line]
        self.assertRegex(line, r"yield2 +212.0 +was +200.0 +\+6.0%")

    def test_four_percent_pass(self):
        self.assertEqual(self.run_with({"yield2": 208, "fib": 62})[0], 0)

    def test_a_count_that_fell_passes_and_is_reported(self):
        status, output = self.run_with({"yield2": 200, "fib": 50})
        self.assertEqual(status, 0)
        self.assertRegex(output, r"fib .*worth an --update")

    def test_a_workload_without_a_count_fails(self):
        self.assertTrue(self.run_with({"mpmc": 100})[0])

    def test_update_writes_what_was_measured_and_keeps_the_rest(self):
        self.assertEqual(self.run_with({"yield2": 300}, "--update")[0], 0)
        self.assertEqual(count.read_counts(self.path), {"yield2": 300.0, "fib": 60.0})


if __name__ == "__main__":
    unittest.main()
