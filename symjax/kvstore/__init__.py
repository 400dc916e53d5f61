"""`mx.kv`: a store of values by key, in one or several processes (MXNet's `mx.kvstore`)."""

from symjax.kvstore.base import KVStoreBase as KVStoreBase
from symjax.kvstore.base import create as create
from symjax.kvstore.kvstore import KVStore as KVStore
from symjax.kvstore.kvstore_server import KVStoreServer as KVStoreServer
