"""`mx.kvstore_server`, the older path of `mx.kvstore.kvstore_server`."""

from symjax.kvstore.kvstore_server import KVStoreServer as KVStoreServer
from symjax.kvstore.kvstore_server import _init_kvstore_server_module as _init_kvstore_server_module
