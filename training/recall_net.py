"""Small networks that say how likely a text is right, fitted to 0 and 1: the straight sum of the features and a layer of hidden units beside it.

    log odds = straight . x + out . max(0, x . hidden)

Feature 0 is 1. Fitting begins at the logistic regression of the same samples, so that the units learn only what is left.
"""
import numpy as np

HIDDEN = 16
STEP_ROWS = 1024


class Net:
    """straight [features], hidden [features, units], out [units]."""

    def __init__(self, straight: np.ndarray, hidden: np.ndarray, out: np.ndarray):
        self.parts = [straight, hidden, out]

    def units(self, features: np.ndarray) -> np.ndarray:
        return np.maximum(features @ self.parts[1], 0)

    def chances(self, features: np.ndarray) -> np.ndarray:
        odds = features @ self.parts[0] + self.units(features) @ self.parts[2]
        return 1 / (1 + np.exp(-np.clip(odds, -30, 30)))

    def for_raw(self, mean: np.ndarray, spread: np.ndarray) -> "Net":
        """The same network over features that are not standardised."""
        straight, hidden = self.parts[0] / spread, self.parts[1] / spread[:, None]
        straight[0] -= mean @ straight
        hidden[0] -= mean @ hidden
        return Net(straight, hidden, self.parts[2])


def fit(features: np.ndarray, labels: np.ndarray, weights: np.ndarray, straight, epochs: int, decay: float, seed: int = 0) -> Net:
    """AdamW with a rate that falls to nothing; with no epochs the straight sum alone.

    features [rows, features], labels and weights [rows]. `straight`, of the same three, fits the regression that it begins at.
    """
    rng = np.random.default_rng(seed)
    mean, spread = features.mean(0), features.std(0)
    varies = spread > 1e-6  # what is always the same here has no say
    mean[~varies], spread[~varies] = 0, 1
    rows, columns = features.shape
    x = (features - mean) / spread
    hidden = rng.normal(0, 1.4 / np.sqrt(columns), (columns, HIDDEN)) if epochs else np.zeros((columns, HIDDEN))
    hidden[1:] *= varies[1:, None]
    net = Net(straight(x, labels, weights), hidden, np.zeros(HIDDEN))
    x = x.astype(np.float32)
    net.parts = [part.astype(np.float32) for part in net.parts]
    means, squares = ([np.zeros_like(part) for part in net.parts] for _ in range(2))
    step, steps = 0, epochs * (rows // STEP_ROWS)
    for _ in range(epochs):
        order = rng.permutation(rows)
        for begin in range(0, rows - STEP_ROWS + 1, STEP_ROWS):
            here = order[begin:begin + STEP_ROWS]
            units = net.units(x[here])
            wrong = (weights[here] * (net.chances(x[here]) - labels[here])).astype(np.float32) / STEP_ROWS
            to_units = wrong[:, None] * net.parts[2] * (units > 0)
            step += 1
            rate = 2e-3 * (1 + np.cos(np.pi * step / steps)) + 1e-5
            for i, slope in enumerate((x[here].T @ wrong, x[here].T @ to_units, units.T @ wrong)):
                means[i] = 0.9 * means[i] + 0.1 * slope
                squares[i] = 0.999 * squares[i] + 0.001 * slope * slope
                change = means[i] / (1 - 0.9**step) / (np.sqrt(squares[i] / (1 - 0.999**step)) + 1e-8)
                net.parts[i] = net.parts[i] - rate * (change + decay * net.parts[i])
    net.parts = [part.astype(float) for part in net.parts]
    return net.for_raw(mean, spread)
