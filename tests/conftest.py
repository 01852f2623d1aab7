"""What all tests need."""

import signal

# A shell starts what runs in its background with Ctrl-C ignored, and so do its children. Tests send
# that signal, so it must mean what it means in a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
