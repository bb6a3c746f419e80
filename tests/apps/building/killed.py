"""Builds in a process of their own that is killed again and again, until the last one ends by itself."""

import subprocess
import sys
import time

CODE = "import sys; from codec_bench import build; build(sys.argv[1], out=sys.argv[2])"


def build_through_kills(recipe, out, *, kills, built, more):
    """Builds a recipe. Each of `kills` processes is killed once it has made some items.

    Args:
        recipe, out: as for `build`. kills: how many.
        built: says how much was made so far. more: how much a process may make before it is killed.
    """
    command = [sys.executable, "-P", "-c", CODE, str(recipe), str(out)]
    for _ in range(kills):
        process, before = subprocess.Popen(command), built()
        while built() < before + more and process.poll() is None:
            time.sleep(0.01)
        assert process.poll() is None, "the build ended before it was killed"
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
