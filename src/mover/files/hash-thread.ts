// A thread that reads blocks of files which the main thread has open, and hashes them.
import { hash } from 'node:crypto'
import { readSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { blockBytes, hashBytes, type HashAnswer, type HashJob } from './hash-jobs.ts'

const port = parentPort
if (!port) throw new Error('this file runs as a worker thread')
const zeros = Buffer.alloc(blockBytes)
const buffer = Buffer.alloc(1 << 20)

function hashBlocks({ id, fd, offset, length }: HashJob): HashAnswer {
  const hashes = Buffer.alloc(Math.ceil(length / blockBytes) * hashBytes)
  let done = 0
  try {
    while (done < length) {
      const got = readFully(fd, Math.min(buffer.length, length - done), offset + done)
      for (let at = 0; at < got; at += blockBytes) {
        const block = buffer.subarray(at, Math.min(got, at + blockBytes))
        // Zeros are written as a hash of zeros.
        if (zeros.compare(block, 0, block.length, 0, block.length) !== 0)
          hash('sha256', block, 'buffer').copy(hashes, ((done + at) / blockBytes) * hashBytes)
      }
      done += got
      if (got < buffer.length) break
    }
  } catch (error) {
    return { id, error: (error as { code?: string }).code ?? String(error) }
  }
  return { id, bytes: done, hashes: hashes.subarray(0, Math.ceil(done / blockBytes) * hashBytes) }
}

function readFully(fd: number, length: number, offset: number): number {
  let done = 0
  while (done < length) {
    const got = readSync(fd, buffer, done, length - done, offset + done)
    if (got === 0) break
    done += got
  }
  return done
}

port.on('message', (job: HashJob) => port.postMessage(hashBlocks(job)))
