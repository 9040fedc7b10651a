"""Other engines that run a trained model. What an engine needs to run imports without torch."""
