"""The cases of workloads.py in PyTorch."""
import math
import time

import torch
from torch import nn
from torch.nn import functional

import workloads as w


def adam(parameters):
    one_call = {"fused": True} if int(torch.__version__.split(".")[0]) >= 2 else {"foreach": True}
    return torch.optim.Adam(parameters, lr=w.LEARNING_RATE, **one_call)


def training(model, x, y, compiled):
    model.train()
    optimizer = adam(model.parameters())
    forward = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        output = forward(x)
        loss = functional.cross_entropy(output.view(-1, output.shape[-1]), y.view(-1))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def milliseconds(step):
    step()
    step()
    start = time.perf_counter()
    for _ in range(3):
        step()
    return time.perf_counter() - start


LAYOUTS = (torch.contiguous_format, torch.channels_last)


def faster_layout(make_model, x, y, compiled):
    steps = [
        training(make_model().to(memory_format=layout), x.to(memory_format=layout), y, compiled)
        for layout in LAYOUTS
    ]
    return min(steps, key=milliseconds) if len(steps) > 1 else steps[0]


def mlp(compiled):
    model = nn.Sequential(
        nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )
    return training(model, torch.rand(128, 784) - 0.5, torch.randint(10, (128,)), compiled)


def mnist(size, batch, compiled):
    def model():
        return nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear((size // 4) ** 2 * 64, 1024),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(1024, 10),
        )

    x = torch.rand(batch, 1, size, size) - 0.5
    return faster_layout(model, x, torch.randint(10, (batch,)), compiled)


def normalized_conv(source, target, size, stride=1):
    return nn.Sequential(
        nn.Conv2d(source, target, size, stride, size // 2, bias=False), nn.BatchNorm2d(target)
    )


class ResidualBlock(nn.Module):
    def __init__(self, source, target):
        super().__init__()
        stride = 1 if source == target else 2
        self.first = normalized_conv(source, target, 3, stride)
        self.second = normalized_conv(target, target, 3)
        same = source == target
        self.shortcut = nn.Identity() if same else normalized_conv(source, target, 1, stride)

    def forward(self, x):
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


def residual(compiled):
    def model():
        channels = w.STAGES[0]
        layers = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
        for target in w.STAGES:
            layers += [ResidualBlock(channels, target), ResidualBlock(target, target)]
            channels = target
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))

    return faster_layout(model, torch.rand(32, 3, 32, 32) - 0.5, torch.randint(10, (32,)), compiled)


class Bottleneck(nn.Module):
    def __init__(self, source, width, stride):
        super().__init__()
        self.reduced = normalized_conv(source, width, 1)
        self.middle = normalized_conv(width, width, 3, stride)
        self.widened = normalized_conv(width, 4 * width, 1)
        same = source == 4 * width
        self.shortcut = nn.Identity() if same else normalized_conv(source, 4 * width, 1, stride)

    def forward(self, x):
        y = functional.relu(self.middle(functional.relu(self.reduced(x))))
        return functional.relu(self.widened(y) + self.shortcut(x))


def deep_residual(compiled):
    def model():
        layers = [normalized_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for width, blocks in w.DEEP_STAGES:
            for block in range(blocks):
                stride = 2 if block == 0 and width > 64 else 1
                layers.append(Bottleneck(channels, width, stride))
                channels = 4 * width
        return nn.Sequential(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)
        )

    x = torch.rand(4, 3, 224, 224) - 0.5
    return faster_layout(model, x, torch.randint(1000, (4,)), compiled)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(w.WIDTH), nn.LayerNorm(w.WIDTH)
        self.inputs, self.output = nn.Linear(w.WIDTH, 3 * w.WIDTH), nn.Linear(w.WIDTH, w.WIDTH)
        self.up, self.down = nn.Linear(w.WIDTH, 4 * w.WIDTH), nn.Linear(4 * w.WIDTH, w.WIDTH)

    def attention(self, x):
        batch, time_, width = x.shape
        parts = self.inputs(x).view(batch, time_, 3, w.HEADS, width // w.HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        if hasattr(functional, "scaled_dot_product_attention"):
            result = functional.scaled_dot_product_attention(query, key, value)
        else:
            scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(width // w.HEADS))
            result = torch.softmax(scores, -1) @ value
        return self.output(result.transpose(1, 2).reshape(batch, time_, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def transformer(layers, compiled):
    model = nn.Sequential(
        nn.Embedding(w.VOCABULARY, w.WIDTH),
        *[Layer() for _ in range(layers)],
        nn.LayerNorm(w.WIDTH),
        nn.Linear(w.WIDTH, w.VOCABULARY),
    )
    x = torch.randint(w.VOCABULARY, (w.SEQUENCES, w.LENGTH))
    return training(model, x, torch.roll(x, -1, 1), compiled)


def make_cases(threads, compiled):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    return {
        w.MLP: lambda: mlp(compiled),
        w.MNIST: lambda: mnist(28, 64, compiled),
        w.DIGITS: lambda: mnist(8, 32, compiled),
        w.RESIDUAL: lambda: residual(compiled),
        w.TRANSFORMER: lambda: transformer(w.LAYERS, compiled),
        w.DEEP_TRANSFORMER: lambda: transformer(w.DEEP_LAYERS, compiled),
        w.DEEP_RESIDUAL: lambda: deep_residual(compiled),
    }
