"""A daemon of one's own: folders that nothing else knows, and an end to everything that was started in them."""

import contextlib
import os
import pathlib
import subprocess
import tempfile


@contextlib.contextmanager
def private_daemon(efimd, config=""):
    """Gives an environment in which `efimd` talks to a daemon of its own, whose config.toml is `config`.

    The commands in it find `efimd` on their PATH and a home folder, $HOME, that is empty. At the end the daemon is asked to
    finish and the folders go away, whatever happened in between.
    """
    efimd = pathlib.Path(efimd).resolve()
    with tempfile.TemporaryDirectory(prefix="efimd-") as folder:
        home = pathlib.Path(folder)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("EFIMD_", "XDG_"))}
        environment |= {
            "HOME": str(home),
            "PATH": f"{efimd.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "EFIMD_CONFIG": str(home / "config.toml"),
            "EFIMD_RUNTIME_DIR": str(home / "run"),
            "EFIMD_CACHE_DIR": str(home / "cache"),
            "EFIMD_STATE_DIR": str(home / "state"),
        }
        (home / "config.toml").write_text(config, encoding="utf-8")
        try:
            yield environment
        finally:
            # Fails when no daemon runs any more, which is as good.
            subprocess.run([efimd, "stop"], env=environment, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=30, check=False)
