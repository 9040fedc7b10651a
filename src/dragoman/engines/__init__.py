"""Other engines that run a trained model. What an engine needs to run imports without torch."""

import os

# ONNX Runtime writes down what it is used for and sends it to its makers, unless it is told not to before it
# is imported. Everything of ours that imports it lies in this package.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
