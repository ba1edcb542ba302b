// The main user story with stock kubectl on real clusters: two tenants, two members, real pods. Runs with a host and
// without one.
import { readFile, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import {
  kubectl,
  kubectlEnvironment,
  ensurePrograms,
  isLongRun,
  needsNodes,
  runKcp,
  startProcess,
  waitFor,
} from '#test/support/index.ts'
import { createLogicalCluster, idOf, type Installation } from './installation.ts'
import { lab, type Lab } from './lab.ts'
import { startLoad } from './load.ts'
import { apiClient, namedPods, namespace, quickMoves, webApplication } from './manifests.ts'
import { untilClean } from './until-clean.ts'

interface Cast {
  readonly installation: Installation
  readonly clusters: Lab
  /** Kubeconfigs of alice in acme and bob in globex. */
  readonly alice: string
  readonly bob: string
}

/** Runs the story on the installation that `install` creates in the lab. */
export function defineStory(title: string, install: (clusters: Lab) => Promise<Installation>): void {
  describe(`the main story, ${title}`, function () {
    this.timeout(180_000)
    let cast: Cast | undefined
    before(async function () {
      this.timeout(240_000)
      await needsNodes(this)
      const clusters = await lab()
      const installation = await install(clusters)
      await installation.join(clusters.east)
      await installation.join(clusters.west)
      await kubectl(installation.admin, [
        'wait',
        '--for=condition=Ready',
        'memberclusters.kcp.dev',
        '--all',
        '--timeout=60s',
      ])
      await createLogicalCluster(installation, 'acme', 'alice')
      await createLogicalCluster(installation, 'globex', 'bob')
      const alice = await installation.tenant('acme', 'alice')
      const bob = await installation.tenant('globex', 'bob')
      cast = { installation, clusters, alice, bob }
    })
    after(async () => {
      await cast?.installation[Symbol.asyncDispose]()
    })
    const people = (): Cast => {
      if (cast === undefined) throw new Error('the setup failed')
      return cast
    }
    const asAlice = (args: string[], options: object = {}) => kubectl(people().alice, args, options)
    const asBob = (args: string[], options: object = {}) => kubectl(people().bob, args, options)

    it("runs alice's Deployment, Service and ConfigMap in a member", async () => {
      await asAlice(['apply', '-f', '-'], { input: namespace('shop', 'east') })
      await asAlice(['apply', '-f', '-'], { input: quickMoves })
      await asAlice(['apply', '-f', '-'], { input: webApplication('shop') })
      await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
      await waitFor(async () => (await podsOn(asAlice, 'east-node')) === 2, {
        what: 'both pods to be told upstream',
        deadlineMs: 60_000,
      })
      const down = (await people().clusters.east.kubectl(['get', 'pods', '-A', '-l', 'app=web', '--no-headers'])).stdout
      expect(down.trim().split('\n')).to.have.length(2)
    })

    it('changes nothing on an unchanged apply, and shows an empty diff', async () => {
      const { stdout } = await asAlice(['apply', '-f', '-'], { input: webApplication('shop') })
      for (const line of stdout.trim().split('\n')) expect(line).to.match(/unchanged$/)
      await asAlice(['diff', '-f', '-'], { input: webApplication('shop') })
    })

    it('lets alice follow logs and run a command in the pod', async () => {
      const pod =
        (await asAlice(['get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', 'name'])).stdout.split('\n')[0] ?? ''
      const { kubectl: program } = await ensurePrograms(['kubectl'])
      await using follow = await startProcess({
        name: 'logs-follow',
        command: program,
        args: ['--kubeconfig', people().alice, 'logs', '-f', '-n', 'shop', pod],
        env: kubectlEnvironment(people().alice),
      })
      await waitFor(() => follow.log().includes('Started HTTP server'), {
        what: 'the log of the pod',
        deadlineMs: 20_000,
      })
      const { stdout } = await asAlice(['exec', '-n', 'shop', pod, '--', '/agnhost', 'help'])
      expect(stdout).to.contain('netexec')
      const failing = await asAlice(['exec', '-n', 'shop', pod, '--', '/agnhost', 'no-such-command'], {
        expectCode: 'any',
      })
      expect(failing.code, 'the exit code of the command').to.equal(1)
    })

    it('lets alice scale, change the template and undo the rollout', async () => {
      await asAlice(['scale', 'deployment/web', '-n', 'shop', '--replicas=3'])
      await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=60s'])
      await asAlice(['set', 'env', 'deployment/web', '-n', 'shop', 'VERSION=2'])
      await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
      const history = (await asAlice(['rollout', 'history', 'deployment/web', '-n', 'shop'])).stdout
      expect(history).to.match(/^1\s/m).and.match(/^2\s/m)
      await asAlice(['rollout', 'undo', 'deployment/web', '-n', 'shop'])
      await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
      const env = await asAlice([
        'get',
        'deployment/web',
        '-n',
        'shop',
        '-o',
        'jsonpath={.spec.template.spec.containers[0].env[*].name}',
      ])
      expect(env.stdout).to.equal('GREETING')
    })

    it('serves the API of its logical cluster to a pod with in-cluster configuration', async () => {
      await asAlice(['apply', '-f', '-'], { input: apiClient('shop') })
      await asAlice(['rollout', 'status', 'deployment/asker', '-n', 'shop', '--timeout=60s'])
      const logs = () => asAlice(['logs', '-n', 'shop', 'deployment/asker'], { expectCode: 'any' })
      const seen = await waitFor(async () => (await logs()).stdout.includes('configmap/web') && (await logs()).stdout, {
        what: 'the pod to list the ConfigMaps of its logical cluster',
        deadlineMs: 30_000,
      })
      expect(seen).to.contain('configmap/kube-root-ca.crt')
      await asAlice(['create', 'configmap', 'news', '-n', 'shop'])
      await waitFor(async () => (await logs()).stdout.includes('configmap/news'), {
        what: 'the pod to see a new ConfigMap',
        deadlineMs: 20_000,
      })
    })

    it('resolves the names of its logical cluster in a pod', async () => {
      for (const name of [
        'web',
        'web.shop',
        'web.shop.svc',
        'web.shop.svc.cluster.local',
        'web.shop.svc.cluster.local.',
        'kube-dns.kube-system.svc.cluster.local',
      ])
        await asAlice([
          'exec',
          '-n',
          'shop',
          'deployment/web',
          '--',
          '/agnhost',
          'connect',
          name.startsWith('kube-dns') ? `${name}:53` : `${name}:80`,
          '--timeout=5s',
        ])
    })

    it('starts a pod whose domain name is its hostname, and finds it by the name in its hosts file', async () => {
      const name = 'database-with-a-rather-long-name'
      await asAlice(['apply', '-f', '-'], { input: namedPods('shop', { name, domain: 'db' }) })
      await asAlice(['rollout', 'status', `statefulset/${name}`, '-n', 'shop', '--timeout=90s'])
      const inPod = async (...command: string[]) =>
        (await asAlice(['exec', '-n', 'shop', `${name}-0`, '--', '/agnhost', ...command])).stdout
      const hosts = await inPod('etc-hosts')
      const [own = ''] = hosts.split(/\s+/).filter((text) => text.startsWith(`${name}-0.db.`))
      expect(own, hosts).to.match(/[.]svc[.]cluster[.]local$/)
      for (const host of [own, `${name}-0.db`, `${name}-0.db.shop.svc.cluster.local`])
        await asAlice([
          'exec',
          '-n',
          'shop',
          'deployment/web',
          '--',
          '/agnhost',
          'connect',
          `${host}:8080`,
          '--timeout=5s',
        ])
      await asAlice(['delete', `statefulset/${name}`, 'service/db', '-n', 'shop'])
    })

    it('shows the nodes that its pods name, and refuses to change them', async () => {
      const named = await asAlice(['get', 'pods', '-n', 'shop', '-o', 'jsonpath={.items[*].spec.nodeName}'])
      const nodes = await asAlice(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}'])
      expect(nodes.stdout.split(' ').sort()).to.deep.equal([...new Set(named.stdout.split(' '))].sort())
      expect((await asAlice(['get', 'nodes', '--no-headers'])).stdout).to.match(/ Ready +<none> .* v1[.]/)
      const [node = ''] = nodes.stdout.split(' ')
      const refused = await asAlice(['cordon', node], { expectCode: 'any' })
      expect(refused.stderr).to.contain('it cannot be changed here')
    })

    it("gives bob objects of the same names that are unaffected by alice's", async () => {
      await asBob(['apply', '-f', '-'], { input: namespace('shop', 'east') })
      expect((await asBob(['get', 'all,configmaps', '-n', 'shop', '-o', 'name'])).stdout.trim()).to.equal(
        'configmap/kube-root-ca.crt',
      )
      await asBob(['apply', '-f', '-'], { input: webApplication('shop', { replicas: 1, greeting: 'bob' }) })
      await asBob(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=90s'])
      const names = async (who: typeof asBob) =>
        (await who(['get', 'pods', '-n', 'shop', '-o', 'name'])).stdout.trim().split('\n')
      const [ofAlice, ofBob] = [await names(asAlice), await names(asBob)]
      expect(ofBob.some((name) => ofAlice.includes(name))).to.equal(false)
      const value = await asBob(['get', 'configmap', 'web', '-n', 'shop', '-o', 'jsonpath={.data.greeting}'])
      expect(value.stdout).to.equal('bob')
    })

    it("refuses alice on bob's path", async () => {
      const text = await readFile(people().alice, 'utf8')
      const elsewhere = `${people().alice}.globex`
      await writeFile(elsewhere, text.replaceAll('clusters/acme', 'clusters/globex'), { mode: 0o600 })
      const refused = await kubectl(elsewhere, ['get', 'configmaps', '-A'], { expectCode: 'any' })
      expect(refused.code).to.not.equal(0)
      expect(refused.stdout).to.equal('')
      expect(refused.stderr).to.match(/Forbidden|forbidden|Unauthorized|must be logged in/)
    })

    it("does not resolve another tenant's names in alice's pods", async () => {
      await asBob(['create', 'service', 'clusterip', 'secret', '-n', 'shop', '--tcp=80'])
      const failed = await asAlice(
        [
          'exec',
          '-n',
          'shop',
          'deployment/web',
          '--',
          '/agnhost',
          'connect',
          'secret.shop.svc.cluster.local:80',
          '--timeout=5s',
        ],
        { expectCode: 'any' },
      )
      expect(failed.code).to.not.equal(0)
      expect(failed.stdout + failed.stderr).to.match(/DNS|no such host/i)
    })

    it('moves the application to the other member by one annotation, without a failed request', async () => {
      const { east, west } = people().clusters
      const down = await east.kubectl(['get', 'services', '-A', '-o', 'json'])
      const address = clusterIpOf(
        JSON.parse(down.stdout) as ServiceList,
        await idOf(people().installation, 'acme'),
        'shop',
        'web',
      )
      const load = await startLoad(east, `http://${address}/hostname`, { perSecond: 50 })
      // A pod pinned to east keeps the Service there for the load generator.
      await asAlice(['annotate', 'deployment/web', '-n', 'shop', 'kcp.dev/clusters=west', '--overwrite'])
      await waitFor(
        async () => (await podsOn(asAlice, 'west-node')) === 3 && (await podsOn(asAlice, 'east-node')) === 0,
        {
          what: 'the pods to have moved',
          deadlineMs: 120_000,
        },
      )
      await asAlice(['rollout', 'status', 'deployment/web', '-n', 'shop', '--timeout=60s'])
      const result = await load.stop()
      console.log(`      move: ${result.sent} requests sent, ${result.failed} failed`, result.errors.slice(0, 3))
      expect(Object.keys(result.answers).length, 'pods that answered').to.be.greaterThan(3)
      expect(result.failed, result.errors.join('\n')).to.equal(0)
      expect(
        (await west.kubectl(['get', 'pods', '-A', '-l', 'app=web', '--no-headers'])).stdout.trim().split('\n'),
      ).to.have.length(3)
    })

    // faults.test.ts kills in the middle of moves without a host.
    if (isLongRun)
      it('finishes a move after kill -9 in the middle of it, and loses nothing', async () => {
        await asAlice(['annotate', 'deployment/web', '-n', 'shop', 'kcp.dev/clusters=east', '--overwrite'])
        for (const process of people().installation.processes) {
          await process.kill()
          await process.start()
        }
        await waitFor(
          async () =>
            (await podsOn(asAlice, 'east-node').catch(() => 0)) === 3 &&
            (await podsOn(asAlice, 'west-node').catch(() => 1)) === 0,
          { what: 'the move to be finished after the crash', deadlineMs: 150_000 },
        )
        expect((await asAlice(['get', 'configmap', 'news', '-n', 'shop', '-o', 'name'])).stdout.trim()).to.equal(
          'configmap/news',
        )
      })

    it('leaves both members clean after the logical clusters are deleted', async function () {
      this.timeout(360_000)
      const { installation, clusters } = people()
      const ids = [await idOf(installation, 'acme'), await idOf(installation, 'globex')]
      await kubectl(installation.admin, ['delete', 'logicalclusters.kcp.dev', 'acme', 'globex', '--timeout=120s'], {
        timeoutMs: 150_000,
      })
      for (const member of [clusters.east, clusters.west]) await untilClean(member, ids)
    })

    it('leaves the members clean after they are removed', async () => {
      await kubectl(people().installation.admin, ['delete', 'memberclusters.kcp.dev', '--all', '--timeout=60s'], {
        timeoutMs: 90_000,
      })
      for (const member of [people().clusters.east, people().clusters.west])
        await waitFor(
          async () =>
            (await member.kubectl(['get', 'namespace', 'kcp-system', '--ignore-not-found', '-o', 'name'])).stdout ===
            '',
          {
            what: `kcp-system to be gone from ${member.name}`,
            deadlineMs: 60_000,
          },
        )
      const help = await runKcp(['member', 'join', '--help'])
      expect(help.stdout).to.contain('--kubeconfig')
    })
  })
}

interface ServiceList {
  items: { metadata: { name: string; namespace: string }; spec: { clusterIP: string } }[]
}

function clusterIpOf({ items }: ServiceList, id: string, inNamespace: string, name: string): string {
  const found = items.find(({ metadata }) => metadata.name === name && metadata.namespace === `${id}-${inNamespace}`)
  if (found === undefined) throw new Error(`the member has no Service ${name} in ${id}-${inNamespace}`)
  return found.spec.clusterIP
}

type AsUser = (args: string[]) => Promise<{ stdout: string }>

/** Number of ready pods of the application on this node, as the tenant sees them. */
async function podsOn(asUser: AsUser, node: string): Promise<number> {
  const { stdout } = await asUser(['get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', 'wide', '--no-headers'])
  return stdout.split('\n').filter((line) => /1\/1\s+Running/.test(line) && line.includes(node)).length
}
