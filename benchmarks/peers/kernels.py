"""The cases of //benchmarks:kernels that its peers time: names and sizes. Rows come last here."""
ROWS = 4096
GATED = {"1000": 1000, "2^24": 1 << 24}
SOFTMAX = (1000, 8192)
WIDE, NORMAL, CLASSES, POINTS = 1024, 768, 1000, 2048
DROPPED = 0.1
ADAM_TENSORS, ADAM_ELEMENTS, LEARNING_RATE = 100, 10000, 1e-3


def cases(library):
    """By name, functions that make a call. `library` makes numbers and calls and has the functions:

    forward(f, shapes), backward(f, shapes): calls of f on numbers of these shapes, backward also of
    the gradients of all of them; gated, bias_gelu, bias_gelu_dropout, softmax, cross_entropy,
    layer_norm, dropout_norm, sqrt; adam(): one update of all tensors.
    """
    wide, normal = [(ROWS, WIDE), (WIDE,)], [(ROWS, NORMAL), (NORMAL,), (NORMAL,)]
    points = [(3, POINTS, 1), (3, 1, POINTS)]

    def forces(x, others):
        apart = others - x
        squared = (apart * apart).sum(0, keepdims=True) + 1e-2
        return (apart * (1 / (squared * library.sqrt(squared)))).sum(-1, keepdims=True)

    forward = {
        **{f"tanh(ax+b) sigmoid(cx), {n}": (library.gated, [(size,)]) for n, size in GATED.items()},
        f"bias + GELU, {ROWS}x{WIDE}": (library.bias_gelu, wide),
        f"bias + GELU + dropout, {ROWS}x{WIDE}": (library.bias_gelu_dropout, wide),
        **{f"softmax, {ROWS}x{n}": (library.softmax, [(ROWS, n)]) for n in SOFTMAX},
        f"cross entropy, {ROWS}x{CLASSES}": (library.cross_entropy, [(ROWS, CLASSES)]),
        f"layer norm, {ROWS}x{NORMAL}": (library.layer_norm, normal),
        f"dropout + residual + layer norm, {ROWS}x{NORMAL}": (
            library.dropout_norm,
            normal + [(ROWS, NORMAL)],
        ),
        f"sum of {ROWS}x{WIDE} over rows": (lambda x: x.sum(0), wide[:1]),
        f"sum of {ROWS}x{WIDE} over columns": (lambda x: x.sum(1), wide[:1]),
        f"sum of {ROWS}x{WIDE}": (lambda x: x.sum(), wide[:1]),
        f"forces, {POINTS}x{POINTS}": (forces, points),
    }
    backward = {
        "tanh(ax+b) sigmoid(cx) and gradient, 2^24": (library.gated, [(1 << 24,)]),
        f"bias + GELU and gradients, {ROWS}x{WIDE}": (library.bias_gelu, wide),
        **{f"softmax and gradient, {ROWS}x{n}": (library.softmax, [(ROWS, n)]) for n in SOFTMAX},
        f"layer norm and gradients, {ROWS}x{NORMAL}": (library.layer_norm, normal),
        f"forces and gradients, {POINTS}x{POINTS}": (forces, points),
    }

    def makers(make, table):
        return {name: lambda args=args: make(*args) for name, args in table.items()}

    return {
        **makers(library.forward, forward),
        **makers(library.backward, backward),
        f"Adam, {ADAM_TENSORS} x {ADAM_ELEMENTS}": library.adam,
    }
