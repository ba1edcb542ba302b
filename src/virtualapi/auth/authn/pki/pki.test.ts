import { expect } from 'chai'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { createPki, createPkiMaterial, openPki, pkiFromSecret, pkiToSecret } from './index.ts'

const day = 24 * 60 * 60 * 1000
const clockAt = (ms: number) => ({ now: () => ms, monotonic: () => ms })

describe('the PKI of an installation', () => {
  let dir: string
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'kcp-pki-'))
  })
  afterEach(() => rm(dir, { recursive: true, force: true }))

  it('is created once, with private files, and opened again', async () => {
    const first = await openPki(dir)
    const second = await openPki(dir)
    expect(second.clientCa).to.equal(first.clientCa)
    expect(second.servingCa).to.equal(first.servingCa)
    expect(second.serviceAccountKey).to.equal(first.serviceAccountKey)
    expect(await readdir(dir)).to.deep.equal(['pki'])
    for (const name of await readdir(join(dir, 'pki'))) {
      expect((await stat(join(dir, 'pki', name))).mode & 0o777, name).to.equal(0o600)
    }
  })

  it('is one PKI if two processes open it at once', async () => {
    const [a, b] = await Promise.all([openPki(dir), openPki(dir)])
    expect(a.clientCa).to.equal(b.clientCa)
    expect(await readdir(dir)).to.deep.equal(['pki'])
  })

  it('names the file that is missing or does not match, and overwrites no keys', async () => {
    await openPki(dir)
    const key = join(dir, 'pki', 'client-ca.key')
    const other = await readFile(join(dir, 'pki', 'serving-ca.key'), 'utf8')
    await rm(key)
    expect(await failure(openPki(dir))).to.contain('client-ca.key" is missing')
    await writeFile(key, other)
    expect(await failure(openPki(dir))).to.contain('client-ca.key" is not the key of')
  })

  it('has different authorities for clients and servers', async () => {
    const pki = createPki(await createPkiMaterial())
    const client = await pki.issueClientCertificate({
      commonName: 'a',
      organizations: [],
      realm: 'installation',
      days: 1,
    })
    const serving = await pki.servingCertificate()
    const signedBy = (certificate: string, authority: string): boolean =>
      new X509Certificate(certificate).verify(new X509Certificate(authority).publicKey)
    expect(signedBy(client.certificate, pki.clientCa)).to.equal(true)
    expect(signedBy(client.certificate, pki.servingCa)).to.equal(false)
    expect(signedBy(serving.certificate, pki.servingCa)).to.equal(true)
    expect(signedBy(serving.certificate, pki.clientCa)).to.equal(false)
  })

  it('writes names as data: a comma in a name adds no organization', async () => {
    const pki = createPki(await createPkiMaterial())
    const id = clusterIdOf('u')
    const { certificate, key } = await pki.issueClientCertificate({
      commonName: 'bob,O=system:masters',
      organizations: ['dev', 'a, O=system:masters'],
      realm: id,
      days: 7,
    })
    const read = new X509Certificate(certificate)
    expect(read.subject.split('\n')).to.deep.equal(
      ['O=dev', 'O=a\\, O\\=system:masters', 'CN=bob\\,O\\=system:masters'].map((s) => s.replaceAll('\\=', '=')),
    )
    expect(read.subjectAltName).to.equal(`URI:kcp://clusters/${id}`)
    expect(read.keyUsage).to.deep.equal(['1.3.6.1.5.5.7.3.2'])
    // Every client library reads PKCS #1.
    expect(read.publicKey.asymmetricKeyType).to.equal('rsa')
    expect(key).to.match(/^-----BEGIN RSA PRIVATE KEY-----/)
    expect(read.checkPrivateKey(createPrivateKey(key))).to.equal(true)
    expect(read.ca).to.equal(false)
  })

  describe('the serving certificate', () => {
    it('is valid for our own names and the given ones', async () => {
      const { certificate } = await createPki(await createPkiMaterial()).servingCertificate([
        'kcp.kcp-system.svc',
        '192.0.2.7',
      ])
      const read = new X509Certificate(certificate)
      for (const name of ['localhost', 'kubernetes.default.svc', 'kubernetes', 'kcp.kcp-system.svc']) {
        expect(read.checkHost(name), name).to.equal(name)
      }
      for (const ip of ['127.0.0.1', '192.0.2.7']) expect(read.checkIP(ip), ip).to.equal(ip)
      expect(read.checkHost('example.com')).to.equal(undefined)
    })

    it('is kept over restarts, until its names change or two thirds of its validity are over', async () => {
      const now = Date.now()
      const at = async (ms: number, hosts: string[]) =>
        (await openPki(dir, { clock: clockAt(ms) })).servingCertificate(hosts)
      const first = await at(now, ['a.example'])
      expect(await at(now + 50 * day, ['a.example'])).to.deep.equal(first)
      const fewer = await at(now + 50 * day, [])
      expect(new X509Certificate(fewer.certificate).checkHost('a.example')).to.equal(undefined)
      const later = await at(now + 111 * day, [])
      expect(later.certificate).to.not.equal(fewer.certificate)
      expect(new X509Certificate(later.certificate).validToDate.getTime()).to.be.greaterThan(now + 200 * day)
    })

    it('is issued again if its file is damaged', async () => {
      const first = await (await openPki(dir)).servingCertificate()
      await writeFile(join(dir, 'pki', 'serving.pem'), first.certificate.slice(0, 100))
      const again = await (await openPki(dir)).servingCertificate()
      expect(again.certificate).to.contain('BEGIN CERTIFICATE')
    })
  })

  it('survives a round trip through a Secret', async () => {
    const material = await createPkiMaterial()
    const data = pkiToSecret(material)
    expect(pkiFromSecret(data)).to.deep.equal(material)
    expect(() => pkiFromSecret({ ...data, 'client-ca.key': data['serving-ca.key']! })).to.throw('is not the key of')
    const { 'service-account.key': _, ...rest } = data
    expect(() => pkiFromSecret(rest)).to.throw('no "service-account.key"')
  })
})

async function failure(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no failure',
    (error: unknown) => (error as Error).message,
  )
}
