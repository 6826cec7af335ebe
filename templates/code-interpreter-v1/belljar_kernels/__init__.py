"""Kernels of many languages behind one small protocol on the sandbox's loopback.

A connection carries one request, a line of JSON, and its answers, lines of JSON. Nothing here knows who asks: vendors' protocols are
spoken outside the sandbox.
"""
