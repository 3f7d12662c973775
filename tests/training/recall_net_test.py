"""The network of recall's chances: what it learns, and that it says the same of features as they come."""
import unittest

import numpy as np
import support  # noqa: F401  the repository is searched for modules

from training import fit_recall, recall_net

ROWS = 4096


class RecallNet(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(1)
        # The second feature speaks for a text where the third is high, and against it where that is low.
        self.features = np.column_stack([np.ones(ROWS), rng.normal(5, 2, ROWS), rng.normal(-3, 0.5, ROWS)])
        self.labels = ((self.features[:, 1] > 5) == (self.features[:, 2] > -3)).astype(float)

    def fitted(self):
        return recall_net.fit(self.features, self.labels, np.ones(ROWS), fit_recall.logistic, epochs=60, decay=0.01)

    def right(self, chances):
        return ((chances > 0.5) == (self.labels > 0.5)).mean()

    def test_it_learns_what_no_sum_of_the_features_has(self):
        straight = 1 / (1 + np.exp(-(self.features @ fit_recall.logistic(self.features, self.labels, np.ones(ROWS)))))
        self.assertLess(self.right(straight), 0.7)
        self.assertGreater(self.right(self.fitted().chances(self.features)), 0.9)

    def test_the_table_has_a_row_of_each_feature_and_all_its_numbers(self):
        net = self.fitted()
        straight, hidden, out = net.parts
        self.assertEqual((straight.shape, hidden.shape, out.shape), ((3,), (3, recall_net.HIDDEN), (recall_net.HIDDEN,)))
        written = fit_recall.net_of(net)
        self.assertEqual(written.count("F"), straight.size + hidden.size + out.size)


if __name__ == "__main__":
    unittest.main()
