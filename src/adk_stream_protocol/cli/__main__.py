"""`python -m adk_stream_protocol.cli` is `adk-stream`."""

import sys

from adk_stream_protocol.cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
