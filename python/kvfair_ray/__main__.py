import sys

from kvfair_ray.cli import main

sys.exit(main())
