"""The cases of //benchmarks:overhead that its peers time, operator by operator: nothing compiled."""
TIMES, FEW = 1000, 16


def cases(numbers, wait, tanh):
    """By name, functions that make a call. `numbers(shape)` makes an array, `wait(x)` computes it."""

    def unread():
        x, y = numbers((FEW,)), numbers((FEW,))

        def call():
            for _ in range(TIMES):
                x + y

        return call

    def chain():
        x, y = numbers((FEW,)), numbers((FEW,))

        def call():
            total = x
            for _ in range(TIMES):
                total = total + y

        return call

    def read():
        x, y = numbers((FEW,)), numbers((FEW,))

        def call():
            for _ in range(TIMES):
                wait(x + y)

        return call

    def layers(count):
        weights, x = numbers((FEW, FEW)), numbers((FEW, 1))

        def call():
            for _ in range(TIMES):
                y = x
                for _ in range(count):
                    y = tanh(weights @ y)
                wait(y)

        return call

    return {
        "1000 additions that nothing reads": unread,
        "a chain of 1000 additions that nothing reads": chain,
        "1000 additions, each read": read,
        "1000 times 1 layers of 16, read": lambda: layers(1),
        "1000 times 8 layers of 16, read": lambda: layers(8),
    }
