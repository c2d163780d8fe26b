"""Keys: the own identity and those of peers."""

from __future__ import annotations

from os import PathLike

from ropewalk._ropewalk import Key


def generate_key(file: str | PathLike[str] | None = None) -> Key:
    """Create a secret key from the machine's random numbers.

    Parameters
    ----------
    file
        Also write it to this new file, which only its owner may read, as ``ropewalk keygen`` does.

    Raises
    ------
    OptionError
        The file exists, since it may be the only copy of somebody's key, or cannot be written.
    """
    key = Key.generate()
    if file is not None:
        key.write(file)
    return key


def public_key(secret: Key | str | PathLike[str]) -> str:
    """The public key of a secret key: 44 characters, to be given to peers.

    Parameters
    ----------
    secret
        A :class:`Key`, or the name of a file with one.
    """
    return key_of(secret).public


def key_of(secret: Key | str | PathLike[str]) -> Key:
    """The key itself, read from its file if necessary."""
    return secret if isinstance(secret, Key) else Key.read(secret)
