"""The shape that most tests use, as bilm-tf's options.json says it; to be copied, never changed."""

from twin import Options

TINY_OPTIONS: Options = {
    "lstm": {
        "dim": 16,
        "projection_dim": 8,
        "n_layers": 2,
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
    },
    "char_cnn": {
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 6], [3, 8]],
        "activation": "relu",
        "n_highway": 1,
        "max_characters_per_token": 50,
    },
}
FILTER_COUNT = 18
