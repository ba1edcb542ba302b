// The answers of any kube-apiserver besides objects: certificates on request, paths without a logical cluster,
// component statuses, metrics of one logical cluster.
import 'reflect-metadata'
import * as x509 from '@peculiar/x509'
import { expect } from 'chai'
import { readFileSync, writeFileSync } from 'node:fs'
import { webcrypto } from 'node:crypto'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { decodeProtobuf } from '#virtualapi/codec/protobuf/index.ts'
import { WireReader } from '#virtualapi/codec/protobuf/wire-reader.ts'
import { openRawClient, type RawClient } from './raw-client.ts'
import { waitFor } from '#test/support/index.ts'

const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

async function newRequest(): Promise<{ request: string; key: string }> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'O=writers, CN=robot',
    keys,
    signingAlgorithm: algorithm,
    // Who asks may not choose where the certificate is valid.
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'url', value: 'kcp://installation' }])],
  })
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  const key = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`
  return { request: request.toString('pem'), key }
}

describe('a logical cluster without members', () => {
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant

  before(async () => {
    kcp = stack.use(await startInstance())
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
  })
  after(() => stack.disposeAsync())

  const createRequest = async (name: string, usages: string[], more: object = {}): Promise<string> => {
    const { request, key } = await newRequest()
    const spec = { request: base64(request), signerName: 'kubernetes.io/kube-apiserver-client', usages, ...more }
    const body = { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name }, spec }
    const created = await acme.http.request('POST', acme.base + requests, { body })
    expect(created.status, created.text).to.equal(201)
    await acme.kubectl(['certificate', 'approve', name])
    return key
  }
  const statusOf = async (name: string): Promise<unknown> =>
    at((await acme.http.request('GET', `${acme.base}${requests}/${name}`)).json(), 'status')
  const withCertificate = (certificate: string, key: string): RawClient => {
    const file = join(kcp.rootDir, 'robot.kubeconfig')
    const kubeconfig = readFileSync(acme.kubeconfig, 'utf8')
      .replace(/client-certificate-data: .*/, `client-certificate-data: ${certificate}`)
      .replace(/client-key-data: .*/, `client-key-data: ${base64(key)}`)
    writeFileSync(file, kubeconfig)
    return stack.use(openRawClient({ kubeconfig: file }))
  }

  it('signs an approved request for a client certificate, which is valid there and nowhere else', async () => {
    const key = await createRequest('robot', ['client auth', 'digital signature'])
    const certificate = await waitFor(async () => (at(await statusOf('robot'), 'certificate') as string) || undefined, {
      what: 'a certificate',
      deadlineMs: 20_000,
    })
    const robot = withCertificate(certificate, key)
    const who = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const response = await robot.request('POST', acme.base + review, { body: who })
    expect(at(response.json(), 'status.userInfo')).to.deep.include({
      username: 'robot',
      groups: ['writers', 'system:authenticated'],
    })
    for (const base of [bob.base, '/clusters/root', '/clusters/*'])
      expect((await robot.request('GET', `${base}/api/v1/namespaces`)).status, base).to.equal(401)
  })

  it('signs certificates that live at most a year, as kube-controller-manager does, whatever a request asks for', async () => {
    const year = 365 * 24 * 3600
    for (const [asked, seconds] of [
      [600, 600],
      [3600, 3600],
      [year, year],
      [year + 1, year],
      [2 ** 31 - 1, year],
    ] as const) {
      const name = `lives-${asked}`
      await createRequest(name, ['client auth'], { expirationSeconds: asked })
      const text = await waitFor(async () => (at(await statusOf(name), 'certificate') as string) || undefined, {
        what: 'a certificate',
        deadlineMs: 20_000,
      })
      const { notAfter } = new x509.X509Certificate(Buffer.from(text, 'base64').toString())
      const left = (notAfter.getTime() - Date.now()) / 1000
      expect(left, name).to.be.within(seconds - 300, seconds + 5)
    }
  })

  it('says why it does not sign a request for other usages', async () => {
    await createRequest('server', ['server auth', 'client auth'])
    const failure = await waitFor(
      async () => {
        const conditions = (at(await statusOf('server'), 'conditions') ?? []) as { type: string }[]
        return conditions.find(({ type }) => type === 'Failed')
      },
      { what: 'the failure', deadlineMs: 20_000 },
    )
    expect(failure).to.include({
      status: 'True',
      reason: 'SignerValidationFailed',
      message: 'invalid usage for client certificate: server auth',
    })
  })

  it('is served without a path to who has its client certificate', async () => {
    await acme.kubectl(['create', 'configmap', 'mine'])
    const names = at((await acme.http.request('GET', '/api/v1/namespaces/default/configmaps')).json(), 'items') as {
      metadata: { name: string }
    }[]
    expect(names.map(({ metadata }) => metadata.name)).to.include('mine')
    expect((await acme.http.request('GET', '/api')).json()).to.have.property('kind', 'APIVersions')
    const other = await bob.http.request('GET', '/api/v1/namespaces/default/configmaps/mine')
    expect(other.status).to.equal(404)
  })

  it('has healthy components', async () => {
    const list = (await acme.http.request('GET', `${acme.base}/api/v1/componentstatuses`)).json()
    expect(at(list, 'metadata')).to.deep.equal({})
    const conditions = [{ type: 'Healthy', status: 'True', message: 'ok' }]
    expect(at(list, 'items')).to.deep.equal(
      ['controller-manager', 'etcd-0', 'scheduler'].map((name) => ({ metadata: { name }, conditions })),
    )
    const { stdout } = await acme.kubectl(['get', 'cs', 'etcd-0'])
    expect(stdout).to.match(/etcd-0 +Healthy +ok/)
    const missing = await acme.http.request('GET', `${acme.base}/api/v1/componentstatuses/x`)
    expect(missing.json()).to.include({ code: 404, message: 'componentstatus "x" not found' })
  })

  it('compresses objects and lists of more than 128 KiB for clients that take gzip', async () => {
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    for (const [name, bytes] of [
      ['large', 200_000],
      ['small', 1000],
    ] as const) {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { text: 'x'.repeat(bytes) } }
      expect((await acme.http.request('POST', path, { body })).status).to.equal(201)
    }
    const headers = ['Accept-Encoding', 'gzip']
    for (const url of [path, `${path}/large`]) {
      const plain = await acme.http.request('GET', url)
      expect(plain.headers).to.not.have.property('content-encoding')
      const { headers: got, body } = await acme.http.request('GET', url, { headers })
      expect(got).to.include({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
      expect(body.length).to.be.lessThan(10_000)
      expect(gunzipSync(body).toString(), url).to.equal(plain.text)
    }
    const small = await acme.http.request('GET', `${path}/small`, { headers })
    expect(small.headers).to.not.have.property('content-encoding')
    expect(small.text).to.equal((await acme.http.request('GET', `${path}/small`)).text)
  })

  it('answers objects, lists, errors and watches as protobuf where clients prefer it', async () => {
    const path = `${acme.base}/apis/rbac.authorization.k8s.io/v1/clusterroles`
    const type = 'application/vnd.kubernetes.protobuf'
    const headers = ['Accept', `${type},application/json`]
    for (const url of [path, `${path}/admin`, `${path}/missing`, `${path}?limit=2`]) {
      const plain = await acme.http.request('GET', url)
      const got = await acme.http.request('GET', url, { headers })
      expect([got.status, got.headers['content-type']], url).to.deep.equal([plain.status, type])
      const { kind, apiVersion, object } = decodeProtobuf(got.body)
      expect({ ...object, kind, apiVersion }, url).to.deep.equal(withoutKinds(plain.json()))
    }
    const watched = await acme.http.request('GET', `${path}?watch=true&timeoutSeconds=1&resourceVersion=0`, { headers })
    expect(watched.headers['content-type']).to.equal(`${type};stream=watch`)
    const [first] = frames(watched.body)
    // WatchEvent: the type, then the object in the only field of a RawExtension.
    const event = new WireReader(first ?? Buffer.of())
    event.tag()
    expect(event.string()).to.equal('ADDED')
    event.tag()
    const raw = event.nested()
    raw.tag()
    const { kind, apiVersion, object } = decodeProtobuf(raw.bytes())
    const { name = '' } = object['metadata'] as { name?: string }
    const same = (await acme.http.request('GET', `${path}/${name}`)).json()
    expect({ ...object, kind, apiVersion }).to.deep.equal(same)
  })

  it('shows its own metrics alone', async () => {
    for (const path of [`${acme.base}/metrics`, '/metrics']) {
      const { status, text } = await acme.http.request('GET', path)
      expect(status, path).to.equal(200)
      expect(text).to.contain('apiserver_storage_objects{resource="namespaces"} ')
      expect(text).to.not.contain('kcp_loaded_logical_clusters')
    }
    const slis = await acme.http.request('GET', `${acme.base}/metrics/slis`)
    expect(slis.text).to.contain('kubernetes_healthcheck{name="ping",type="livez"} 1')
  })
})

/** In protobuf only a list has kind and apiVersion, not its items. */
function withoutKinds(object: Record<string, unknown>): Record<string, unknown> {
  const { items } = object
  if (!Array.isArray(items)) return object
  return {
    ...object,
    items: items.map((item: Record<string, unknown>) => {
      const { kind: _, apiVersion: __, ...others } = item
      return others
    }),
  }
}

/** The frames of a protobuf watch: each has its length before it, in four bytes. */
function frames(body: Buffer): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0; at < body.length;) {
    const length = body.readUInt32BE(at)
    found.push(body.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return found
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
