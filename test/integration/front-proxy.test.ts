// The identity of the host's users in our server: through a real kube-aggregator, and around it.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer, request as httpsRequest, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createClient, httpTransport, loadKubeconfig } from '#client/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import {
  createAuthenticator,
  createPki,
  createPkiMaterial,
  frontProxyFromHost,
  type UserInfo,
} from '#virtualapi/auth/authn/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { clusterPrograms, ensurePrograms } from '#test/support/programs.ts'
import { startCluster, type Cluster } from '#test/support/cluster.ts'
import { hostService } from '#test/support/host-service.ts'
import { waitFor } from '#test/support/wait-for.ts'

const acme: LogicalCluster = {
  name: 'acme' as ClusterName,
  id: clusterIdOf('acme'),
  uid: 'acme',
  creationTimestamp: '2026-01-01T00:00:00Z',
  owners: [],
  deleting: false,
}
const proxied = '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/api/v1/pods'

describe('the host as a front proxy', function () {
  this.timeout(60_000)
  const stack = new AsyncDisposableStack()
  const life = new AbortController()
  let cluster: Cluster
  let port: number
  let servingCa: string

  before(async function () {
    this.timeout(60 * 60_000)
    await ensurePrograms(clusterPrograms)
    cluster = await startCluster({ name: 'host' })
    stack.defer(() => cluster.stop())
    const transport = stack.use(httpTransport(await loadKubeconfig({ file: cluster.kubeconfig }, { trusted: true })))
    const source = stack.use(
      frontProxyFromHost({ client: createClient(transport), log: silentLogger, signal: life.signal }),
    )
    await source.synced(life.signal)
    const pki = createPki(await createPkiMaterial())
    servingCa = pki.servingCa
    const directory = {
      byName: () => acme,
      byId: () => acme,
      all: () => [acme],
      childrenOf: () => [],
      onChange: () => () => undefined,
    }
    const authenticator = createAuthenticator({ pki, directory, frontProxy: source.current })
    const serving = await pki.servingCertificate(['virtual.default.svc', cluster.hostAddress])
    const server = createServer(
      { cert: serving.certificate, key: serving.key, requestCert: true, rejectUnauthorized: false },
      (request, response) => {
        const { socket, rawHeaders, method = 'GET', url = '/' } = request
        const info = parseRequest(method, url, { hasBearerToken: false })
        const peerCertificate = socket instanceof TLSSocket ? socket.getPeerCertificate(true) : undefined
        const asked = { info, rawHeaders, peerCertificate, cluster: info.cluster.kind === 'one' ? acme : undefined }
        Promise.resolve()
          .then(() => authenticator.authenticate(asked, life.signal))
          .then((found) => ({ code: 200, body: found?.user ?? { name: 'nobody' } }))
          .catch((error: unknown) => ({ code: isStatusError(error) ? error.code : 500, body: { name: String(error) } }))
          .then(({ code, body }) => {
            // The aggregator's own requests: availability and discovery.
            const group = {
              kind: 'APIResourceList',
              apiVersion: 'v1',
              groupVersion: 'virtual.kcp.dev/v1alpha1',
              resources: [],
            }
            response.writeHead(code, { 'content-type': 'application/json' })
            response.end(JSON.stringify(url.startsWith(proxied) || code !== 200 ? body : group))
          }, response.destroy.bind(response))
      },
    )
    stack.defer(() => closed(server))
    server.listen(0, cluster.hostAddress)
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
    const service = { name: 'virtual', namespace: 'default' }
    await cluster.kubectl(['apply', '-f', '-'], {
      input: hostService({ ...service, address: cluster.hostAddress, port }),
    })
    const spec = {
      ...{ group: 'virtual.kcp.dev', version: 'v1alpha1', groupPriorityMinimum: 900, versionPriority: 10, service },
      caBundle: Buffer.from(servingCa).toString('base64'),
    }
    const apiService = {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1alpha1.virtual.kcp.dev' },
      spec,
    }
    await cluster.kubectl(['apply', '-f', '-'], { input: apiService })
    // Available=True also means that the aggregator may read the discovery of its group.
    await cluster.kubectl(['wait', '--for=condition=Available', '--timeout=30s', 'apiservice/v1alpha1.virtual.kcp.dev'])
  })
  after(async () => {
    life.abort(new Error('the test is over'))
    await stack.disposeAsync()
  })

  const through = async (identity: { commonName: string; organizations?: string[] }): Promise<UserInfo> => {
    const kubeconfig = await cluster.kubeconfigFor({ organizations: [], ...identity })
    const get = () => cluster.kubectl(['--kubeconfig', kubeconfig, 'get', '--raw', proxied])
    const { stdout } = await waitFor(get, { what: 'the aggregated API to answer', deadlineMs: 20_000 })
    return JSON.parse(stdout) as UserInfo
  }

  it('passes its users on with their names and each group apart', async () => {
    await cluster.kubectl(['create', 'clusterrolebinding', 'alice', '--clusterrole=cluster-admin', '--user=alice'])
    expect(await through({ commonName: 'alice', organizations: ['team-a', 'dev, system:masters'] })).to.deep.include({
      name: 'alice',
      groups: ['team-a', 'dev, system:masters', 'system:authenticated'],
      realm: { kind: 'host' },
    })
  })

  it('passes its administrators on under names that have no rights here', async () => {
    const found = await through({ commonName: 'system:admin', organizations: ['system:masters'] })
    expect(found).to.deep.include({
      name: 'host:system:admin',
      groups: ['host:system:masters', 'system:authenticated'],
    })
  })

  it("is the only source of identity headers: requests around it, with the host's own certificates, are unauthenticated", async () => {
    const headers = { 'X-Remote-User': 'admin', 'X-Remote-Group': 'system:masters' }
    const tenant = await cluster.ca.issue({ commonName: 'front-proxy-client', organizations: ['system:masters'] })
    const stranger = await cluster.frontProxyCa.issue({ commonName: 'stranger' })
    const proxy = await cluster.frontProxyCa.issue({ commonName: 'front-proxy-client' })
    const ask = (path: string, identity?: { certificate: string; key: string }) => past(path, headers, identity)
    expect(await ask(proxied)).to.deep.equal([200, 'nobody'])
    expect(await ask(proxied, tenant)).to.have.property('0', 401)
    expect(await ask(proxied, stranger)).to.have.property('0', 401)
    expect(await ask('/clusters/acme/api/v1/pods', proxy)).to.have.property('0', 401)
    // Proves that the requests above are valid: the front proxy's own certificate is accepted.
    expect(await ask(proxied, proxy)).to.deep.equal([200, 'admin'])
  })

  async function past(
    path: string,
    headers: Record<string, string>,
    identity?: { certificate: string; key: string },
  ): Promise<[number, string]> {
    const certificate = identity === undefined ? {} : { cert: identity.certificate, key: identity.key }
    const request = httpsRequest({
      host: cluster.hostAddress,
      port,
      path,
      headers,
      ca: servingCa,
      agent: false,
      ...certificate,
    })
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response) text += String(chunk)
    return [response.statusCode ?? 0, (JSON.parse(text) as { name: string }).name]
  }
})

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}
