"""Evaluate finished runs at other sizes, under other protocols, or by few-shot; see conf/evaluate.yaml."""

import sys

from vitpos.evaluation.finished import main

if __name__ == "__main__":
    main(sys.argv[1:])
