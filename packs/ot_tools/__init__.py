"""The bundled packs that run in the server's process, one file each; those that run in workers are in ``ot_packs``."""
