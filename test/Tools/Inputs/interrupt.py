"""interrupt.py SIGNAL PATTERN COMMAND...: sends the signal once a file matches;
the command must end by it."""

import glob
import signal
import subprocess
import sys
import time

number = signal.Signals[sys.argv[1]]
signal.signal(number, signal.SIG_DFL)  # background jobs may ignore it
process = subprocess.Popen(sys.argv[3:])
while process.poll() is None and not glob.glob(sys.argv[2]):
    time.sleep(0.001)
process.send_signal(number)
sys.exit(process.wait() != -number)
