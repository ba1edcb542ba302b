// Compares our audit lines with those of a real kube-apiserver at level Metadata, request by request.
import { expect } from 'chai'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { at, isRecord } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

type Event = Record<string, unknown>

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** A real server answers with plain text, not a Status: only the code is compared. */
  readonly noStatus?: boolean
  /** Without any certificate. */
  readonly unknown?: boolean
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

const maps = '/api/v1/namespaces/default/configmaps'
const merge = { 'content-type': 'application/merge-patch+json' }
const secretText = 'do-not-write-me-down'

/** In this order: each request works on the result of the ones before. */
const requests: Readonly<Record<string, Asked>> = {
  list: { method: 'GET', path: `${maps}?limit=5&labelSelector=none` },
  create: { method: 'POST', path: maps, body: { metadata: { name: 'one' }, data: { a: 'b' } } },
  generateName: { method: 'POST', path: maps, body: { metadata: { generateName: 'some-', labels: { go: 'y' } } } },
  again: { method: 'POST', path: maps, body: { metadata: { name: 'one' } } },
  get: { method: 'GET', path: `${maps}/one` },
  missing: { method: 'GET', path: `${maps}/none` },
  'missing in YAML': { method: 'GET', path: `${maps}/none`, headers: { accept: 'application/yaml' } },
  'missing and pretty': { method: 'GET', path: `${maps}/none?pretty=true` },
  'missing in protobuf': {
    ...{ method: 'GET', path: `${maps}/none` },
    headers: { accept: 'application/vnd.kubernetes.protobuf' },
  },
  update: { method: 'PUT', path: `${maps}/one`, body: { metadata: { name: 'one' }, data: { a: 'c' } } },
  conflict: {
    method: 'PUT',
    path: `${maps}/one`,
    body: { metadata: { name: 'one', resourceVersion: '1' }, data: { a: 'd' } },
  },
  patch: { method: 'PATCH', path: `${maps}/one`, body: { data: { a: 'e' } }, headers: merge },
  invalid: { method: 'POST', path: maps, body: { metadata: { name: 'X Y' } } },
  'bad body': { method: 'POST', path: maps, body: '{"metadata":{"name":7}}' },
  secret: {
    method: 'POST',
    path: '/api/v1/namespaces/default/secrets',
    body: { metadata: { name: 'hidden' }, stringData: { password: secretText } },
  },
  watch: { method: 'GET', path: `${maps}?watch=true&timeoutSeconds=1` },
  'watch as nobody': { method: 'GET', path: `${maps}?watch=true`, headers: { 'impersonate-user': 'eve' } },
  deployment: {
    method: 'POST',
    path: '/apis/apps/v1/namespaces/default/deployments',
    body: {
      metadata: { name: 'web' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    },
  },
  scale: {
    method: 'PATCH',
    path: '/apis/apps/v1/namespaces/default/deployments/web/scale',
    body: { spec: { replicas: 0 } },
    headers: merge,
  },
  'as another': { method: 'GET', path: maps, headers: { 'impersonate-user': 'eve', 'impersonate-group': 'dev' } },
  'as a ServiceAccount': {
    method: 'GET',
    path: '/api/v1/namespaces/default',
    headers: { 'impersonate-user': 'system:serviceaccount:default:default' },
  },
  version: { method: 'GET', path: '/version' },
  discovery: { method: 'GET', path: '/apis/apps/v1' },
  nothing: { method: 'GET', path: '/nothing/here', noStatus: true },
  'no kind': { method: 'GET', path: '/apis/example.com/v1/namespaces/default/things', noStatus: true },
  'a long agent': { method: 'GET', path: `${maps}/one`, headers: { 'user-agent': 'x'.repeat(2000) } },
  'through proxies': {
    method: 'GET',
    path: `${maps}/one`,
    headers: { 'x-forwarded-for': '10.1.2.3, nonsense, 10.4.5.6', 'x-real-ip': '10.7.8.9' },
  },
  delete: { method: 'DELETE', path: `${maps}/one` },
  'delete all': { method: 'DELETE', path: `${maps}?labelSelector=go` },
  'a namespace': { method: 'GET', path: '/api/v1/namespaces/default' },
}

/** Sends the request and resolves with the Audit-ID once the whole answer has arrived. */
function ask(
  kubeconfig: string,
  base: string,
  { method, path, body, headers = {}, unknown = false }: Asked,
): Promise<{ status: number; auditId: string | undefined }> {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  const decode = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64')
  const { hostname, port } = new URL(clusters[0]?.cluster.server ?? '')
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const identity = unknown
    ? {}
    : {
        cert: decode(users[0]?.user['client-certificate-data']),
        key: decode(users[0]?.user['client-key-data']),
      }
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(
      {
        host: hostname,
        port,
        path: `${base}${path}`,
        method,
        agent: false,
        ca: decode(clusters[0]?.cluster['certificate-authority-data']),
        ...identity,
        headers: { 'user-agent': 'auditor/1', ...(text && { 'content-type': 'application/json' }), ...headers },
      },
      (response) => {
        const auditId = response.headers['audit-id']
        response.resume()
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, auditId: Array.isArray(auditId) ? auditId[0] : auditId }),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(text)
  })
}

function eventsOf(file: string): Event[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Event)
}

/** The fields that both servers should agree on; server-specific values are reduced to whether they are set. */
function comparable(event: Event, base: string): Event {
  const { requestURI, user, impersonatedUser, sourceIPs, annotations, objectRef } = event
  const there = (value: unknown): string => (typeof value === 'string' && value !== '' ? 'there' : 'none')
  const ref = isRecord(objectRef)
    ? { ...objectRef, ...('uid' in objectRef && { uid: there(objectRef['uid']) }) }
    : objectRef
  const status = structuredClone(event['responseStatus'])
  if (isRecord(status) && isRecord(status['details']) && 'uid' in status['details']) status['details']['uid'] = 'some'
  return {
    ...event,
    objectRef: ref,
    responseStatus: status,
    requestURI: String(requestURI).replace(base, ''),
    // A real server adds the id of the certificate.
    user: isRecord(user) ? { username: user['username'], groups: user['groups'] } : user,
    impersonatedUser: isRecord(impersonatedUser)
      ? { username: impersonatedUser['username'], groups: impersonatedUser['groups'] }
      : 'none',
    sourceIPs: Array.isArray(sourceIPs) ? sourceIPs.slice(0, -1) : sourceIPs,
    requestReceivedTimestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(
      String(event['requestReceivedTimestamp']),
    ),
    stageTimestamp: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/.test(String(event['stageTimestamp'])),
    annotations: { decision: at(annotations, 'authorization') ?? decisionOf(annotations) },
  }
}

function decisionOf(annotations: unknown): unknown {
  return isRecord(annotations) ? annotations['authorization.k8s.io/decision'] : undefined
}

describe('audit lines', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let dir: string
  let real: Cluster
  let kcp: KcpInstance
  let acme: Tenant
  let ours: string
  let theirs: string

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-audit-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    ours = join(dir, 'ours.log')
    theirs = join(dir, 'theirs.log')
    const policy = join(dir, 'policy.yaml')
    const rules = [{ level: 'Metadata' }]
    writeFileSync(
      policy,
      JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages: ['RequestReceived'], rules }),
    )
    real = stack.use(
      await startCluster({
        name: 'audited',
        flags: {
          'kube-apiserver': [
            `--audit-policy-file=${policy}`,
            `--audit-log-path=${theirs}`,
            '--disable-admission-plugins=ServiceAccount',
          ],
        },
      }),
    )
    kcp = stack.use(await startInstance(['--audit-log', ours]))
    acme = await kcp.tenant('acme')
    for (const [name, asked] of Object.entries(requests)) {
      const headers = { ...asked.headers, 'audit-id': name.replaceAll(' ', '-') }
      const [a, b] = [
        await ask(real.kubeconfig, '', { ...asked, headers }),
        await ask(acme.kubeconfig, acme.base, { ...asked, headers }),
      ]
      expect(b, name).to.deep.equal(a)
      expect(b.auditId, name).to.equal(name.replaceAll(' ', '-'))
    }
  })
  after(() => stack.disposeAsync())

  const linesFor = async (file: string, name: string): Promise<Event[]> =>
    waitFor(
      () => {
        const found = eventsOf(file).filter(({ auditID }) => auditID === name.replaceAll(' ', '-'))
        return found.some(({ stage }) => stage === 'ResponseComplete') && found
      },
      { what: `the lines of "${name}" in ${file}`, deadlineMs: 5000 },
    )

  for (const [name, { noStatus = false }] of Object.entries(requests))
    it(`equal those of a real server for "${name}"`, async () => {
      const shape = (event: Event, base: string): Event => {
        const compared = comparable(event, base)
        return noStatus ? { ...compared, responseStatus: at(compared, 'responseStatus.code') } : compared
      }
      const [expected, actual] = [await linesFor(theirs, name), await linesFor(ours, name)]
      expect(actual.map((event) => shape(event, acme.base))).to.deep.equal(expected.map((event) => shape(event, '')))
    })

  it('tell that a client went away, not that the server stops', async () => {
    const { clusters, users } = parse(readFileSync(acme.kubeconfig, 'utf8')) as Kubeconfig
    const decode = (text = ''): Buffer => Buffer.from(text, 'base64')
    const { hostname, port } = new URL(clusters[0]?.cluster.server ?? '')
    const user = users[0]?.user
    const headers = {
      'audit-id': 'gone',
      'content-type': 'application/json',
      'content-length': 100,
      expect: '100-continue',
    }
    const request = httpsRequest({
      ...{ hostname, port, method: 'POST', path: acme.base + maps, headers, agent: false },
      ca: decode(clusters[0]?.cluster['certificate-authority-data']),
      cert: decode(user?.['client-certificate-data']),
      key: decode(user?.['client-key-data']),
    })
    request.on('error', () => undefined)
    // The server reads the body when it says this.
    request.on('continue', () => request.destroy())
    request.flushHeaders()
    const [line] = await linesFor(ours, 'gone')
    expect(at(line, 'responseStatus.message')).to.equal('the client went away before the response')
  })

  it('contain the logical cluster, its id, and the origin of the user', async () => {
    const [line] = await linesFor(ours, 'create')
    const { stdout } = await kcp.admin.kubectl(['get', 'lc/acme', '-o', 'jsonpath={.status.id}'])
    expect(at(line, 'annotations')).to.deep.include({
      'kcp.dev/logical-cluster': 'acme',
      'kcp.dev/logical-cluster-id': stdout,
      'kcp.dev/user-realm': 'cluster',
    })
  })

  it('cover anonymous users, invalid paths and a logical cluster that does not exist', async () => {
    const token = 'eyJhbGciOiJSUzI1NiJ9.c2VjcmV0LXRva2Vu.c2lnbmF0dXJl'
    const cases: Readonly<Record<string, Asked & { readonly code: number }>> = {
      stranger: { method: 'GET', path: `/clusters/acme${maps}`, unknown: true, code: 403 },
      'bad-token': {
        method: 'GET',
        path: `/clusters/acme${maps}`,
        unknown: true,
        headers: { authorization: `Bearer ${token}` },
        code: 401,
      },
      dots: { method: 'GET', path: '/clusters/acme/%2e%2e/bob/api', code: 400 },
      absent: { method: 'GET', path: '/clusters/nowhere/api', code: 401 },
      all: { method: 'GET', path: '/clusters/*/api/v1/secrets', code: 401 },
    }
    for (const [name, { code, ...asked }] of Object.entries(cases)) {
      const answer = await ask(acme.kubeconfig, '', { ...asked, headers: { ...asked.headers, 'audit-id': name } })
      expect(answer.status, name).to.be.oneOf([code, 401, 403])
      const lines = await linesFor(ours, name)
      expect(lines, name).to.have.length(1)
      expect(at(lines[0], 'responseStatus.code'), name).to.equal(answer.status)
      expect(at(lines[0], 'responseStatus.status'), name).to.equal('Failure')
      expect(at(lines[0], 'requestURI'), name).to.equal(asked.path)
    }
    const text = readFileSync(ours, 'utf8')
    expect(text).not.to.include(token)
    expect(text).not.to.include('c2VjcmV0LXRva2Vu')
  })

  it('contain no body of a Secret, in a file readable by its owner only', () => {
    const text = readFileSync(ours, 'utf8')
    expect(text).not.to.include(secretText)
    expect(text).not.to.include(Buffer.from(secretText).toString('base64'))
    expect(statSync(ours).mode & 0o777).to.equal(0o600)
  })

  it('get a generated id if the client sends none, or an invalid one', async () => {
    const first = await ask(acme.kubeconfig, acme.base, { method: 'GET', path: '/version' })
    expect(first.auditId).to.match(/^[0-9a-f-]{36}$/)
    await linesFor(ours, first.auditId ?? '')
    const headers = { 'audit-id': 'x'.repeat(500) }
    const second = await ask(acme.kubeconfig, acme.base, { method: 'GET', path: '/version', headers })
    expect(second.auditId).to.match(/^[0-9a-f-]{36}$/)
  })

  it('continue in a new file after SIGHUP, and are counted', async () => {
    renameSync(ours, `${ours}.old`)
    process.kill(kcp.process.pid, 'SIGHUP')
    await waitFor(
      async () => {
        await ask(acme.kubeconfig, acme.base, { method: 'GET', path: '/version', headers: { 'audit-id': 'moved' } })
        return eventsOf(ours).some(({ auditID }) => auditID === 'moved')
      },
      { what: 'the new file', deadlineMs: 5000 },
    )
    const metrics = await kcp.admin.http.request('GET', '/metrics')
    const value = (name: string): number => Number(new RegExp(`^${name} (\\d+)`, 'm').exec(metrics.text)?.[1])
    expect(value('kcp_audit_lines_total')).to.be.greaterThan(Object.keys(requests).length)
    expect(value('kcp_audit_lines_dropped_total')).to.equal(0)
  })

  it('are complete after SIGTERM', async () => {
    const ids = Array.from({ length: 50 }, (_, i) => `last-${i}`)
    await Promise.all(
      ids.map((id) =>
        ask(acme.kubeconfig, acme.base, { method: 'GET', path: `${maps}/x`, headers: { 'audit-id': id } }),
      ),
    )
    await kcp.process.stop()
    const written = new Set(eventsOf(ours).map(({ auditID }) => auditID))
    expect(ids.filter((id) => !written.has(id))).to.deep.equal([])
  })
})
