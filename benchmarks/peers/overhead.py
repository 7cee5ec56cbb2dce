"""The cases of //benchmarks:overhead that its peers time: operator by operator, and, of those that
compile, calls of a compiled function."""
TIMES, FEW = 1000, 16


def chain_of(count, tanh):
    def layers(weights, y):
        for _ in range(count):
            y = tanh(weights @ y)
        return y

    return layers


def replays(numbers, wait, tanh, compiled, start=lambda y: None):
    """By name, functions that make a call of `compiled(f)`. `start(y)` sets out what a call by
    itself only records."""

    def of(count):
        def make():
            weights, x = numbers((FEW, FEW)), numbers((FEW, 1))
            layers = compiled(chain_of(count, tanh))

            def call():
                for _ in range(TIMES):
                    y = layers(weights, x)
                    start(y)
                wait(y)

            return call

        return make

    return {f"{TIMES} replays of {count} layers of {FEW}": of(count) for count in (1, 8)}


def cases(numbers, wait, tanh):
    """By name, functions that make a call. `numbers(shape)` makes an array, `wait(x)` computes it."""

    def unread():
        x, y = numbers((FEW,)), numbers((FEW,))

        def call():
            for _ in range(TIMES):
                x + y

        return call

    def chain(is_read):
        x, y = numbers((FEW,)), numbers((FEW,))

        def call():
            total = x
            for _ in range(TIMES):
                total = total + y
            if is_read:
                wait(total)

        return call

    def read():
        x, y = numbers((FEW,)), numbers((FEW,))

        def call():
            for _ in range(TIMES):
                wait(x + y)

        return call

    def layers(count):
        weights, x = numbers((FEW, FEW)), numbers((FEW, 1))
        chain = chain_of(count, tanh)

        def call():
            for _ in range(TIMES):
                wait(chain(weights, x))

        return call

    return {
        "1000 additions that nothing reads": unread,
        "a chain of 1000 additions that nothing reads": lambda: chain(False),
        "a chain of 1000 additions, read": lambda: chain(True),
        "1000 additions, each read": read,
        "1000 times 1 layers of 16, read": lambda: layers(1),
        "1000 times 8 layers of 16, read": lambda: layers(8),
    }
