// SPDX-License-Identifier: MIT
// PNG files with a palette: a picture of the page has a few colours and their mixtures at the edges of letters.
import { deflateSync, crc32 } from 'node:zlib';

const COLORS = 256;

function chunk(type, data) {
  const all = Buffer.alloc(data.length + 12);
  all.writeUInt32BE(data.length, 0);
  all.write(type, 4, 'latin1');
  data.copy(all, 8);
  all.writeUInt32BE(crc32(all.subarray(4, data.length + 8)), data.length + 8);
  return all;
}
const distance = (a, b) => [16, 8, 0].reduce((sum, shift) => sum + ((a >> shift & 255) - (b >> shift & 255)) ** 2, 0);

// Returns a file of the picture {width, height, data: RGBA}. The most frequent colours stay as they are; others become the next one.
export function pack({ width, height, data }) {
  const counts = new Map();
  const pixels = Uint32Array.from({ length: width * height }, (_, i) => data.readUIntBE(4 * i, 3));
  for (const color of pixels) counts.set(color, (counts.get(color) || 0) + 1);
  const palette = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, COLORS);
  const places = new Map([...counts.keys()].map((color) => {
    let best = 0;
    for (let i = 1; i < palette.length; i++) if (distance(color, palette[i]) < distance(color, palette[best])) best = i;
    return [color, best];
  }));
  const rows = Buffer.alloc(height * (width + 1)); // each begins with its filter, none
  for (let i = 0; i < pixels.length; i++) rows[Math.floor(i / width) * (width + 1) + 1 + i % width] = places.get(pixels[i]);
  const head = Buffer.alloc(13), colors = Buffer.alloc(3 * palette.length);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3], 8);
  palette.forEach((color, i) => colors.writeUIntBE(color, 3 * i, 3));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('PLTE', colors),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
