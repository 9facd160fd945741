"""The example notebook, run by a real Jupyter kernel: python3 -m pip install nbclient ipykernel."""

import importlib.util
import os
import unittest
from unittest import mock

from support import BINARY, PATIENCE, ROOT, SdkTest, eventually

NOTEBOOK = ROOT / "deploy" / "examples" / "notebook" / "tune.ipynb"
HAS_JUPYTER = all(importlib.util.find_spec(name) for name in ("nbclient", "nbformat", "ipykernel"))


@unittest.skipUnless(HAS_JUPYTER, "no Jupyter: python3 -m pip install nbclient ipykernel")
class NotebookTest(SdkTest):
    def run_notebook(self, **environment):
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        client = nbclient.NotebookClient(
            notebook,
            timeout=3 * PATIENCE,
            kernel_name="python3",
            resources={"metadata": {"path": str(NOTEBOOK.parent)}},
        )
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SHIRABE_")}
        own = {"SHIRABE_BINARY": str(BINARY), "SHIRABE_HOME": str(self.dir / "home")}
        with mock.patch.dict(os.environ, {**kept, **own, **environment}, clear=True):
            return client.execute()

    def test_runs_and_shows_what_it_has_found(self):
        cells = [c for c in self.run_notebook().cells if c.cell_type == "code"]
        shown = [
            output.data
            for cell in cells
            for output in cell.outputs
            if output.output_type in ("display_data", "execute_result")
        ]
        pages = [data["text/html"] for data in shown if "text/html" in data]
        self.assertTrue(any("<svg" in page for page in pages), pages)
        self.assertTrue(any("12/12 trials" in page for page in pages), pages)
        self.assertTrue(any("'lr'" in data.get("text/plain", "") for data in shown))

    def test_goes_on_with_a_named_search(self):
        storage = str(self.dir / "moons")
        for _ in range(2):
            self.run_notebook(MOONS_STORAGE=storage)

    def test_the_interrupt_button_ends_the_search_and_keeps_the_kernel(self):
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel(kernel_name="python3", env=self.environment)
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.addCleanup(client.stop_channels)
        seen = []

        def run(code):
            reply = client.execute_interactive(code, timeout=PATIENCE, output_hook=seen.append)
            self.assertEqual(reply["content"]["status"], "ok", reply["content"])
            return "".join(m["content"].get("text", "") for m in seen)

        run(
            "import shirabe, threading, time, os, signal\n"
            "def f(x, trial):\n"
            "    if trial.number == 3:\n"
            "        os.kill(os.getpid(), signal.SIGINT)  # as the button does\n"
            "        time.sleep(0.2)\n"
            "    return x\n"
        )
        for parallel in (1, 2):
            space = "{'x': shirabe.float(0, 1)}"
            run(
                f"r = shirabe.optimize(f, {space}, minimize='loss', trials=50, parallel={parallel})"
            )
            shown = run("print(r.ended, sum(t.state == 'done' for t in r) >= 3, len(r) < 50)")
            self.assertIn("interrupted True True", shown)
            seen.clear()

    def test_a_kernel_that_is_restarted_goes_on_where_it_was(self):
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel(kernel_name="python3", env=self.environment)
        self.addCleanup(manager.shutdown_kernel, now=True)
        self.addCleanup(client.stop_channels)
        calls = self.dir / "calls"
        cell = (
            "import os, time, shirabe\n"
            "def f(x, trial):\n"
            f"    with open({str(calls)!r}, 'a') as file:\n"
            "        print(trial.number, x, file=file)\n"
            f"    while trial.number == 3 and not os.path.exists({str(self.dir / 'go')!r}):\n"
            "        time.sleep(0.01)\n"
            "    return x\n"
            "r = shirabe.optimize(f, {'x': shirabe.float(0, 1)}, minimize='loss', trials=5,\n"
            "                     algorithm='random', name='restarted')\n"
            "print(r.ended, [t.state for t in r])\n"
        )
        client.execute(cell)
        eventually(lambda: calls.exists() and len(calls.read_text().splitlines()) == 3)
        manager.restart_kernel(now=True)
        client.wait_for_ready(timeout=PATIENCE)
        (self.dir / "go").write_text("")
        seen = []
        reply = client.execute_interactive(cell, timeout=PATIENCE, output_hook=seen.append)
        self.assertEqual(reply["content"]["status"], "ok", reply["content"])
        shown = "".join(message["content"].get("text", "") for message in seen)
        self.assertIn(f"trials {['done'] * 5}", shown)
        lines = calls.read_text().splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["1", "2", "3", "3", "4", "5"])
        self.assertEqual(lines[2], lines[3])  # the same point


if __name__ == "__main__":
    unittest.main()
