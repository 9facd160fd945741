"""What is to be made small."""


def loss(lr):
    return (lr - 0.3) ** 2
