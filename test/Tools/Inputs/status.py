"""status.py STATUS COMMAND...: fails unless the command ends with it."""

import subprocess
import sys

sys.exit(subprocess.call(sys.argv[2:]) != int(sys.argv[1]))
