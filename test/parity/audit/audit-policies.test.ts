// Audit events, compared with those of a real kube-apiserver with the same policies and the same requests.
import { expect } from 'chai'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { compilePolicy, parsePolicy, type AuditLog } from '#virtualapi/index.ts'
import { isRecord } from '#test/integration/json.ts'
import { startServedApi, type ServedApi, type ServedTenant } from '#test/integration/served-api.ts'
import { startCluster, waitFor, type Cluster } from '#test/support/index.ts'
import { randomBelow } from '../cel/generate.ts'
import { randomRules } from './policies.ts'

const count = Number(process.env['KCP_AUDIT_POLICIES'] ?? 16)
const seed = Number(process.env['KCP_SEED'] ?? 20_263)

interface Asked {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type Send = (asked: Asked & { readonly auditId: string }) => Promise<number>
type Event = Record<string, unknown>

/** In this order: each request works on the result of the ones before. */
function requestsIn(namespace: string): Readonly<Record<string, Asked>> {
  const core = `/api/v1/namespaces/${namespace}`
  const maps = `${core}/configmaps`
  const apps = `/apis/apps/v1/namespaces/${namespace}/deployments`
  const patch = (type: string): Record<string, string> => ({ 'content-type': `application/${type}` })
  const container = { name: 'c', image: 'i' }
  const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [container] } }
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  return {
    create: { method: 'POST', path: maps, body: { metadata: { name: 'one', labels: { go: 'y' } }, data: { a: 'b' } } },
    'in YAML': {
      ...{ method: 'POST', path: maps, headers: patch('yaml') },
      body: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\ndata:\n  k: "v\\u2028w"\n',
    },
    again: { method: 'POST', path: maps, body: { metadata: { name: 'one' } } },
    get: { method: 'GET', path: `${maps}/one` },
    'get in protobuf': {
      ...{ method: 'GET', path: `${maps}/one` },
      headers: { accept: 'application/vnd.kubernetes.protobuf' },
    },
    'get as Table': { method: 'GET', path: `${maps}/one`, headers: { accept: table } },
    missing: { method: 'GET', path: `${maps}/none` },
    list: { method: 'GET', path: maps },
    'list in protobuf': { method: 'GET', path: maps, headers: { accept: 'application/vnd.kubernetes.protobuf' } },
    'list of one': { method: 'GET', path: `${maps}?fieldSelector=metadata.name%3Done` },
    watch: { method: 'GET', path: `${maps}?watch=true&timeoutSeconds=1` },
    update: {
      method: 'PUT',
      path: `${maps}/one`,
      body: { metadata: { name: 'one', labels: { go: 'y' } }, data: { a: 'c' } },
    },
    'merge patch': {
      method: 'PATCH',
      path: `${maps}/one`,
      body: { data: { b: '1' } },
      headers: patch('merge-patch+json'),
    },
    'JSON patch': {
      ...{ method: 'PATCH', path: `${maps}/one`, headers: patch('json-patch+json') },
      body: [{ op: 'add', path: '/data/c', value: '2' }],
    },
    apply: {
      ...{ method: 'PATCH', path: `${maps}/one?fieldManager=me&force=true`, headers: patch('apply-patch+yaml') },
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { d: '3' } },
    },
    'bad body': { method: 'POST', path: maps, body: '{"metadata":{"name":7}}' },
    invalid: { method: 'POST', path: maps, body: { metadata: { name: 'X Y' } } },
    secret: {
      method: 'POST',
      path: `${core}/secrets`,
      body: { metadata: { name: 'hidden' }, stringData: { password: 'x' } },
    },
    deployment: {
      ...{ method: 'POST', path: apps },
      body: { metadata: { name: 'web' }, spec: { selector: { matchLabels: { a: 'b' } }, template } },
    },
    scale: {
      method: 'PATCH',
      path: `${apps}/web/scale`,
      body: { spec: { replicas: 0 } },
      headers: patch('merge-patch+json'),
    },
    'get scale': { method: 'GET', path: `${apps}/web/scale` },
    account: { method: 'POST', path: `${core}/serviceaccounts`, body: { metadata: { name: 'robot' } } },
    token: {
      ...{ method: 'POST', path: `${core}/serviceaccounts/robot/token` },
      body: { spec: { audiences: ['x'], expirationSeconds: 3600 } },
    },
    'review of a token': {
      ...{ method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews' },
      body: { spec: { token: 'x' } },
    },
    'review of oneself': {
      ...{ method: 'POST', path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews' },
      body: { spec: { nonResourceAttributes: { path: '/x', verb: 'get' } } },
    },
    'who am I': { method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews', body: {} },
    review: {
      ...{ method: 'POST', path: '/apis/authorization.k8s.io/v1/subjectaccessreviews' },
      body: { spec: { user: 'eve', resourceAttributes: { verb: 'get', resource: 'pods' } } },
    },
    'delete with options': { method: 'DELETE', path: `${maps}/two`, body: { propagationPolicy: 'Background' } },
    'delete with a kind': {
      ...{ method: 'DELETE', path: `${core}/serviceaccounts/robot` },
      body: { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 0 },
    },
    'delete by query': { method: 'DELETE', path: `${core}/secrets/hidden?propagationPolicy=Background` },
    'delete all': { method: 'DELETE', path: `${maps}?labelSelector=go` },
    'a namespace': { method: 'GET', path: core },
    'as another': { method: 'GET', path: maps, headers: { 'impersonate-user': 'eve' } },
    version: { method: 'GET', path: '/version' },
    health: { method: 'GET', path: '/healthz' },
    groups: { method: 'GET', path: '/apis' },
    group: { method: 'GET', path: '/apis/apps/v1' },
    nothing: { method: 'GET', path: '/nothing/here' },
  }
}

interface Kubeconfig {
  readonly clusters: readonly { cluster: { server: string; 'certificate-authority-data': string } }[]
  readonly users: readonly { user: { 'client-certificate-data': string; 'client-key-data': string } }[]
}

/** Sends requests to a real server as the user of a kubeconfig. */
function senderOf(kubeconfig: string): Send {
  const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig
  const decode = (text = ''): Buffer => Buffer.from(text, 'base64')
  const { hostname, port } = new URL(clusters[0]?.cluster.server ?? '')
  const agent = new Agent({
    ca: decode(clusters[0]?.cluster['certificate-authority-data']),
    cert: decode(users[0]?.user['client-certificate-data']),
    key: decode(users[0]?.user['client-key-data']),
  })
  return ({ method, path, auditId, ...asked }) =>
    new Promise((resolve, reject) => {
      const { headers, text } = contentOf(asked, auditId)
      const sent = httpsRequest({ hostname, port, path, method, agent, headers }, (response) => {
        response.resume()
        response.once('end', () => resolve(response.statusCode ?? 0))
      })
      sent.on('error', reject)
      sent.end(text)
    })
}

function contentOf(
  { body, headers = {} }: Pick<Asked, 'body' | 'headers'>,
  auditId: string,
): { headers: Record<string, string>; text: string | undefined } {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const own = { 'user-agent': 'auditor/1', 'audit-id': auditId }
  // Node sends the body of a DELETE without its length otherwise.
  const typed = text && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
  return { headers: { ...own, ...typed, ...headers }, text }
}

/** Descriptions of columns are ours. */
const changing = new Set([
  'description',
  'uid',
  'resourceVersion',
  'token',
  'creationTimestamp',
  'time',
  'expirationTimestamp',
])

/** A body without the values that each server chooses. */
function comparableBody(value: unknown): unknown {
  // Ages in tables, and hashes of certificates.
  if (typeof value === 'string') return value.replace(/^\d+s$|(?<=^X509SHA256=)\w+$/, 'SOME')
  if (Array.isArray(value)) return value.map(comparableBody)
  if (!isRecord(value)) return value
  const kept = Object.entries(value).filter(([, field]) => field !== null)
  return Object.fromEntries(
    kept.map(([name, field]) => [
      name,
      changing.has(name) && typeof field === 'string' ? 'SOME' : comparableBody(field),
    ]),
  )
}

/** Annotations whose values each server chooses. */
const chosen = /\/(reason|issued-credential-id)$/

const codeOf = (status: unknown): unknown => (isRecord(status) ? status['code'] : undefined)

/** What both servers should agree on. */
function comparable(event: Event, base: string): Event {
  const { level, stage, verb, requestURI, user, impersonatedUser, objectRef, responseStatus, annotations } = event
  const { requestObject, responseObject } = event
  const isDocument = isRecord(responseObject) && /^API(Group|Resource|Versions)/.test(String(responseObject['kind']))
  const nameOf = (who: unknown): unknown => (isRecord(who) ? who['username'] : who)
  const own = Object.entries(isRecord(annotations) ? annotations : {}).filter(([key]) => !key.startsWith('kcp.dev/'))
  return {
    ...{ level, stage, verb, requestURI: String(requestURI).replace(base, '') },
    ...{ user: nameOf(user), impersonatedUser: nameOf(impersonatedUser) },
    objectRef: comparableBody(objectRef),
    // A real server answers unknown paths with plain text.
    responseStatus: comparableBody(verb === 'get' && !isRecord(objectRef) ? codeOf(responseStatus) : responseStatus),
    requestObject: comparableBody(requestObject),
    responseObject: isDocument ? responseObject['kind'] : comparableBody(responseObject),
    annotations: Object.fromEntries(own.map(([key, value]) => [key, chosen.test(key) ? 'SOME' : value])),
  }
}

describe('audit events by policy, compared with kube-apiserver', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  const below = randomBelow(seed)
  const users = Array.from({ length: count }, (_, i) => ({ name: `policy-${i}`, namespace: `space-${i}` }))
  const ours: Event[] = []
  const requests = requestsIn('NAMESPACE')
  let theirs: Event[]
  let real: Cluster
  let served: ServedApi
  let acme: ServedTenant

  before(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'kcp-audit-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const rules = users.flatMap(({ name, namespace }) => randomRules(below, name, namespace))
    const refused = [{ level: 'Metadata', userGroups: ['system:unauthenticated'] }]
    const document = {
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitManagedFields: true,
      rules: [...rules, ...refused],
    }
    const [file, lines] = [join(dir, 'policy.yaml'), join(dir, 'theirs.log')]
    writeFileSync(file, JSON.stringify(document))
    const flags = [
      `--audit-policy-file=${file}`,
      `--audit-log-path=${lines}`,
      '--disable-admission-plugins=ServiceAccount',
    ]
    real = stack.use(await startCluster({ name: 'policies', flags: { 'kube-apiserver': flags } }))
    const scopeOf = compilePolicy(parsePolicy(readFileSync(file, 'utf8')).policy)
    const audit: AuditLog = { scopeOf, write: (event) => void ours.push(JSON.parse(event.text()) as Event) }
    served = stack.use(await startServedApi({ audit }))
    acme = await served.tenant('acme')
    for (const { name, namespace } of users) {
      const organizations = ['system:masters', name]
      const toReal = senderOf(await real.kubeconfigFor({ commonName: name, organizations }))
      const user = await served.user(acme, name, organizations)
      const toOurs: Send = async ({ method, path, auditId, ...asked }) => {
        const { headers, text } = contentOf(asked, auditId)
        return (await user.request(method, acme.base + path, { headers, ...(text !== undefined && { body: text }) }))
          .status
      }
      const space = { method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } }
      for (const [title, asked] of Object.entries({ space, ...requestsIn(namespace) })) {
        const auditId = `${name}.${title.replaceAll(' ', '-')}`
        const [expected, actual] = [await toReal({ ...asked, auditId }), await toOurs({ ...asked, auditId })]
        expect(actual, auditId).to.equal(expected)
      }
    }
    const read = (): Event[] =>
      readFileSync(lines, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Event)
    await waitFor(() => read().some(({ auditID }) => auditID !== ''), { what: 'the lines', deadlineMs: 10_000 })
    theirs = read()
  })
  after(() => stack.disposeAsync())

  const of = (events: readonly Event[], auditId: string, base: string): Event[] =>
    events.filter(({ auditID }) => auditID === auditId).map((event) => comparable(event, base))

  for (const title of ['space', ...Object.keys(requests)])
    it(`are the same for "${title}"`, () => {
      for (const { name } of users) {
        const auditId = `${name}.${title.replaceAll(' ', '-')}`
        expect(of(ours, auditId, acme.base), auditId).to.deep.equal(of(theirs, auditId, ''))
      }
    })

  it('cover all levels and stages', () => {
    const seen = (field: string): unknown[] => [...new Set(ours.map((event) => event[field]))]
    expect(seen('level')).to.have.members(['Metadata', 'Request', 'RequestResponse'])
    expect(seen('stage')).to.include.members(['RequestReceived', 'ResponseStarted', 'ResponseComplete'])
    expect(ours.some(({ requestObject }) => requestObject !== undefined)).to.equal(true)
    expect(ours.some(({ responseObject }) => responseObject !== undefined)).to.equal(true)
  })

  it('are the same for credentials that are refused', async () => {
    const headers = { authorization: 'Bearer nonsense' }
    const path = '/api/v1/namespaces/default/configmaps'
    const ask = (port: number, prefix: string, host: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const options = { hostname: host, port, path: prefix + path, rejectUnauthorized: false, agent: false as const }
        const sent = httpsRequest({ ...options, headers: { ...headers, 'audit-id': 'refused' } }, (response) => {
          response.resume()
          response.once('end', () => resolve(response.statusCode ?? 0))
        })
        sent.on('error', reject)
        sent.end()
      })
    const { hostname, port } = new URL(real.server)
    expect(await ask(served.port, acme.base, '127.0.0.1')).to.equal(await ask(Number(port), '', hostname))
    // No rule is for a user without a name, in either policy.
    expect(ours.filter(({ auditID }) => auditID === 'refused')).to.deep.equal([])
  })
})
