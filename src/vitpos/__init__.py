"""vitpos: what does a position embedding buy a Vision Transformer?"""
