// An object store that lies, breaks or is elsewhere. How a real one answers is in test/integration/snapshot-stores.test.ts.
import { expect } from 'chai'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { s3Storage } from './s3-storage.ts'
import { isStorageError, type SnapshotStorage } from './storage.ts'

type Answer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

describe('a bucket of an object store', () => {
  const { signal } = new AbortController()
  let server: Server
  let answer: Answer
  let asked: string[]
  let storage: SnapshotStorage
  let origin: string

  beforeEach(async () => {
    asked = []
    server = createServer((request, response) => {
      asked.push(`${request.method ?? ''} ${request.url ?? ''}`)
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => answer(request, response, Buffer.concat(chunks)))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    storage = s3Storage({
      bucket: 'backup',
      prefix: 'kcp',
      endpoint: origin,
      credentials: { accessKeyId: 'id', secretAccessKey: 'key' },
    })
  })
  afterEach(async () => {
    await storage[Symbol.asyncDispose]()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  const noUploads = '<ListMultipartUploadsResult></ListMultipartUploadsResult>'
  async function* bytes(size: number): AsyncGenerator<Uint8Array> {
    for (let left = size; left > 0; left -= 1024 * 1024)
      yield await Promise.resolve(Buffer.alloc(Math.min(left, 1024 * 1024), 1))
  }
  async function reason(step: Promise<unknown>): Promise<string> {
    return await step.then(
      () => 'none',
      (error: unknown) => (isStorageError(error) ? error.reason : String(error)),
    )
  }
  async function read(key: string): Promise<number> {
    let size = 0
    for await (const chunk of await storage.get(key, signal)) size += chunk.length
    return size
  }

  it('that claims another length has not stored the object', async () => {
    answer = (request, response) => {
      if (request.method === 'HEAD') response.setHeader('content-length', 7)
      response.end(request.method === 'GET' ? noUploads : '')
    }
    expect(await reason(storage.put('a', bytes(10), signal))).to.equal('WrongContent')
  })

  it('that fails once is asked again, and an error inside of 200 is one', async () => {
    let failures = 2
    answer = (request, response) => {
      if (request.method === 'PUT' && failures-- > 0) {
        if (failures === 1) response.statusCode = 503
        response.end('<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>')
        return
      }
      if (request.method === 'HEAD') response.setHeader('content-length', 10)
      response.end(request.method === 'GET' ? noUploads : '')
    }
    expect(await reason(storage.put('a', bytes(10), signal))).to.equal('none')
    expect(asked.filter((one) => one.startsWith('PUT')).length).to.equal(3)
  })

  it('is not followed when it redirects', async () => {
    answer = (_, response) => response.writeHead(307, { location: `${origin}/elsewhere` }).end()
    expect(await reason(storage.check(signal))).to.equal('StorageFailed')
    expect(asked.filter((one) => one.includes('elsewhere'))).to.deep.equal([])
  })

  it('whose connection is cut in the middle, or that sends less than it says, gives an error', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('half', () => response.destroy())
    }
    expect(await reason(read('a'))).to.equal('StorageUnreachable')
  })

  it('keeps no half of an upload: parts that fail, and bytes that end with an error', async () => {
    answer = (request, response) => {
      const url = request.url ?? ''
      if (request.method === 'POST') response.end('<R><UploadId>u&amp;1</UploadId></R>')
      else if (request.method === 'PUT' && url.includes('partNumber=2'))
        response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
      else response.writeHead(200, { etag: '"x"' }).end(request.method === 'GET' ? noUploads : '')
    }
    expect(await reason(storage.put('a', bytes(12 * 1024 * 1024), signal))).to.equal('AccessDenied')
    const aborted = 'DELETE /backup/kcp/a?uploadId=u%261'
    expect(asked).to.include(aborted)
    expect(asked.filter((one) => one.startsWith('POST'))).to.deep.equal(['POST /backup/kcp/a?uploads='])
    asked.length = 0
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield* bytes(11 * 1024 * 1024)
      throw new Error('the source broke')
    }
    expect(await reason(storage.put('a', failing(), signal))).to.equal('Error: the source broke')
    expect(asked).to.include(aborted)
  })

  it('loses what broken attempts at the same key have left, and nothing else', async () => {
    const upload = (key: string, id: string): string => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`
    answer = (request, response) => {
      if (request.method === 'HEAD') response.setHeader('content-length', 10)
      response.end(request.method === 'GET' ? `<L>${upload('kcp/a', 'mine')}${upload('kcp/ab', 'other')}</L>` : '')
    }
    await storage.put('a', bytes(10), signal)
    expect(asked.filter((one) => one.startsWith('DELETE'))).to.deep.equal(['DELETE /backup/kcp/a?uploadId=mine'])
  })

  it('that lists the same page for ever, or answers without an end, is given up', async () => {
    answer = (_, response) =>
      response.end('<L><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></L>')
    const listing = async (): Promise<void> => {
      for await (const _ of storage.list('', signal)) expect.fail('there is nothing to list')
    }
    expect(await reason(listing())).to.equal('StorageFailed')
    answer = (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024, 32)));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    expect(await reason(storage.check(signal))).to.equal('StorageFailed')
  })

  it('that is silent is given up, whether it takes bytes or sends them', async () => {
    const patient = { bucket: 'backup', prefix: '', endpoint: origin, idleMs: 50 }
    await using impatient = s3Storage({ ...patient, credentials: { accessKeyId: 'id', secretAccessKey: 'key' } })
    answer = (request, response) => {
      if (request.method !== 'GET') response.end()
      else response.writeHead(200, { 'content-length': 100 }).write('some')
    }
    const reading = async (): Promise<void> => {
      for await (const chunk of await impatient.get('a', signal)) expect(chunk.length).to.equal(4)
    }
    expect(await reason(reading())).to.equal('StorageUnreachable')
    answer = () => undefined
    expect(await reason(impatient.get('a', signal))).to.equal('StorageUnreachable')
  })

  it('has keys without a way out of its prefix', async () => {
    for (const key of ['../x', 'a/../b', '/a', 'a?b', 'a#b', ''])
      expect(await reason(storage.get(key, signal)), key).to.equal('PathRefused')
    const place = { bucket: 'backup', prefix: '', credentials: { accessKeyId: 'id', secretAccessKey: 'key' } }
    for (const endpoint of ['file:///etc', 'https://user@host', 'https://host/?x=', 'no url'])
      expect(() => s3Storage({ ...place, endpoint }), endpoint).to.throw(/is not a URL such as/)
    for (const bucket of ['a/b', 'A', '..', 'x'.repeat(64)])
      expect(() => s3Storage({ ...place, bucket }), bucket).to.throw(/cannot be the name of a bucket/)
    expect(asked).to.deep.equal([])
  })
})
