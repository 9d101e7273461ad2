/**
 * Zstandard where the clients look for it: Node.js has it from 22.15 on. An older one gets it from a package.
 *
 * It is put there while this module is evaluated, so that clients imported after it find it.
 */
import zlib from "node:zlib";
import * as zstd from "@bokuweb/zstd-wasm";

// Room for a frame that doesn't tell the size of its content.
const ROOM = { defaultHeapSize: 1 << 26 };

zlib.zstdCompressSync ??= (content) => Buffer.from(zstd.compress(content));
zlib.zstdDecompressSync ??= (content) => Buffer.from(zstd.decompress(content, ROOM));
await zstd.init();
