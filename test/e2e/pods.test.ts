// Logs, exec, attach, cp and port-forward with stock kubectl, over WebSocket and SPDY, with and without a host, without
// leaving connections open.
import { expect } from 'chai'
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  ensurePrograms,
  isLongRun,
  kubectl,
  kubectlEnvironment,
  needsNodes,
  runCommand,
  startProcess,
  waitFor,
  type CommandOptions,
  type CommandResult,
  type ManagedProcess,
} from '#test/support/index.ts'
import { deleteAll } from './delete-all.ts'
import { createLogicalCluster, installOnHost, installWithoutHost, type Installation } from './installation.ts'
import { endLabAfterAll, lab, type Lab } from './lab.ts'
import { toolbox } from './manifests.ts'

interface Protocol {
  readonly title: string
  readonly webSocket: 'true' | 'false'
}
const webSocketOnly: Protocol = { title: 'WebSocket', webSocket: 'true' }
const protocols: readonly Protocol[] = [webSocketOnly, { title: 'SPDY', webSocket: 'false' }]

/** Number of started kubectls, for the names of their logs. */
let started = 0

endLabAfterAll()
definePodSuite('without a host', installWithoutHost, isLongRun ? protocols : [webSocketOnly])
definePodSuite("through the host's API", installOnHost, protocols)

function definePodSuite(
  title: string,
  install: (clusters: Lab) => Promise<Installation>,
  protocols: readonly Protocol[],
): void {
  describe(`kubectl on pods, ${title}`, function () {
    this.timeout(60_000)
    const stack = new AsyncDisposableStack()
    let installation: Installation
    let alice = ''
    let program: string

    before(async function () {
      this.timeout(240_000)
      await needsNodes(this)
      const clusters = await lab()
      installation = stack.use(await install(clusters))
      await installation.join(clusters.east)
      await createLogicalCluster(installation, 'acme', 'alice')
      alice = await installation.tenant('acme', 'alice')
      program = (await ensurePrograms(['kubectl'])).kubectl
      await kubectl(alice, ['apply', '-f', '-'], { input: toolbox('default') })
      await kubectl(alice, ['rollout', 'status', 'deployment/toolbox', '--timeout=90s'])
      await waitFor(() => logs(['-c', 'web']).then(({ stdout }) => stdout.includes('Started HTTP server')), {
        what: 'the first line of the log',
        deadlineMs: 20_000,
      })
    })
    after(async function () {
      this.timeout(120_000)
      await using _ = stack
      if (alice !== '') await deleteAll(installation.admin)
    })

    const environment = (webSocket: string): Record<string, string | undefined> => ({
      ...kubectlEnvironment(alice),
      KUBECTL_REMOTE_COMMAND_WEBSOCKETS: webSocket,
      KUBECTL_PORT_FORWARD_WEBSOCKETS: webSocket,
    })
    const logs = (flags: string[], options: object = {}): Promise<CommandResult> =>
      kubectl(alice, ['logs', 'deployment/toolbox', ...flags], options)
    const execute = (
      webSocket: string,
      container: string,
      command: string[],
      options: CommandOptions = {},
    ): Promise<CommandResult> =>
      runCommand(
        program,
        ['--kubeconfig', alice, 'exec', '-i', 'deployment/toolbox', '-c', container, '--', ...command],
        { ...options, env: environment(webSocket), timeoutMs: 30_000 },
      )
    const stay = async (webSocket: string, args: string[]): Promise<ManagedProcess> =>
      await startProcess({
        name: `kubectl-${++started}`,
        command: program,
        args: ['--kubeconfig', alice, ...args],
        env: environment(webSocket),
      })
    /** A port-forward to the web container; kubectl chooses the port. */
    const forward = async (webSocket: string): Promise<ManagedProcess & { url: string }> => {
      const process = await stay(webSocket, ['port-forward', 'deployment/toolbox', ':8080'])
      const port = await waitFor(() => /127\.0\.0\.1:(\d+)/.exec(process.log())?.[1], {
        what: 'the port to be forwarded',
        deadlineMs: 20_000,
      })
      return Object.assign(process, { url: `http://127.0.0.1:${port}` })
    }
    const sockets = (): number =>
      installation.processes.reduce((sum, { pid }) => sum + readdirSync(`/proc/${pid}/fd`).length, 0)

    it('prints logs with tail, since and limit, and of all containers', async () => {
      expect((await logs(['-c', 'web', '--tail=1'])).stdout.trim().split('\n')).to.have.length(1)
      expect((await logs(['-c', 'web', '--limit-bytes=10'])).stdout).to.have.length(10)
      expect((await logs(['-c', 'web', '--since=1h', '--timestamps'])).stdout).to.match(/^\d{4}-\d\d-\d\dT/)
      const all = (await logs(['--all-containers', '--prefix'])).stdout
      expect(all)
        .to.match(/\/web\] .*Started HTTP server/)
        .and.match(/\/tool\] Starting to serve/)
      const previous = await logs(['-c', 'web', '--previous'], { expectCode: 'any' })
      expect(previous.code).to.equal(1)
      expect(previous.stderr).to.contain('previous terminated container "web"')
    })

    for (const { title, webSocket } of protocols) {
      it(`passes a command's standard input to its end and prints the output, over ${title}`, async () => {
        const configMap = {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'x' },
          data: { a: 'x'.repeat(500_000) },
        }
        const command = ['/kubectl', 'label', '--local', '-f', '-', 'read=whole', '-o', 'json']
        const { stdout } = await execute(webSocket, 'tool', command, { input: JSON.stringify(configMap) })
        const response = JSON.parse(stdout) as { metadata: { labels: object }; data: { a: string } }
        expect(response.metadata.labels).to.deep.equal({ read: 'whole' })
        expect(response.data.a).to.have.length(500_000)
      })
      it(`exits with the code of a failed command, over ${title}`, async () => {
        const failed = await execute(webSocket, 'web', ['/agnhost', 'no-such-command'], { expectCode: 'any' })
        expect(failed.code).to.equal(1)
        expect(failed.stderr).to.contain('terminated with exit code 1')
        const missing = await execute(webSocket, 'web', ['/no-such-program'], { expectCode: 'any' })
        expect(missing.code).to.not.equal(0)
        expect(missing.stderr).to.contain('no such file or directory')
      })
      it(`forwards many connections through one port, over ${title}`, async () => {
        await using process = await forward(webSocket)
        const responses = await Promise.all(
          Array.from({ length: 40 }, async (_, i) => await (await fetch(`${process.url}/echo?msg=${i}`)).text()),
        )
        expect(responses).to.deep.equal(Array.from({ length: 40 }, (_, i) => String(i)))
      })
      it(`copies a file into a container and back, over ${title}`, async () => {
        const folder = await mkdtemp(join(tmpdir(), 'kcp-cp-'))
        try {
          const bytes = randomBytes(1 << 20)
          await writeFile(join(folder, 'sent'), bytes)
          const named = ['get', 'pods', '-l', 'app=toolbox', '-o', 'jsonpath={.items[0].metadata.name}']
          const pod = (await kubectl(alice, named)).stdout
          const copy = (from: string, to: string): Promise<CommandResult> =>
            runCommand(program, ['--kubeconfig', alice, 'cp', from, to, '-c', 'tool'], {
              env: environment(webSocket),
              timeoutMs: 30_000,
            })
          await copy(join(folder, 'sent'), `${pod}:/tmp/kept`)
          await copy(`${pod}:/tmp/kept`, join(folder, 'received'))
          expect(bytes.equals(await readFile(join(folder, 'received')))).to.equal(true)
        } finally {
          await rm(folder, { recursive: true })
        }
      })
      it(`attaches to a process and prints its output, over ${title}`, async () => {
        await using attached = await stay(webSocket, ['attach', 'deployment/toolbox', '-c', 'web', '--quiet'])
        await using process = await forward(webSocket)
        await waitFor(
          async () => {
            await fetch(`${process.url}/echo?msg=${title}`)
            return attached.log().includes(`GET /echo?msg=${title}`)
          },
          { what: 'the attached output', deadlineMs: 20_000 },
        )
      })
    }

    it('follows logs, and prints those of a container that has ended', async () => {
      await using following = await stay('true', ['logs', '-f', 'deployment/toolbox', '-c', 'web', '--tail=0'])
      await using process = await forward('true')
      await waitFor(
        async () => {
          await fetch(`${process.url}/echo?msg=followed`)
          return following.log().includes('msg=followed')
        },
        { what: 'the line to be followed', deadlineMs: 20_000 },
      )
      await fetch(`${process.url}/exit?code=3`).catch(() => undefined)
      const previous = await waitFor(async () => (await logs(['-c', 'web', '--previous'])).stdout, {
        what: 'the log of the container before',
        deadlineMs: 30_000,
      })
      expect(previous).to.contain('msg=followed')
    })

    it('serves twenty clients at once and closes every connection when they leave', async () => {
      const suffix = (): Promise<CommandResult> => execute('true', 'web', ['/agnhost', 'dns-suffix'])
      await suffix()
      const before = sockets()
      const results = await Promise.all(Array.from({ length: 20 }, suffix))
      expect(new Set(results.map(({ stdout }) => stdout)).size).to.equal(1)
      const clients = await holdOpen()
      await Promise.all(clients.map((client) => client.kill()))
      // Idle connections to the member are kept for 30 s; a leak would keep one per client.
      await waitFor(() => sockets() <= before + 3, {
        what: `open files to be as few as before (${before})`,
        deadlineMs: 45_000,
      })
    })

    it('lets every process exit 0 within five seconds of SIGTERM, whatever is open', async () => {
      const clients = await holdOpen()
      try {
        for (const process of installation.processes) {
          const began = performance.now()
          process.send('SIGTERM')
          const { code } = await process.exited
          expect(code, process.spec.name).to.equal(0)
          expect(performance.now() - began, process.spec.name).to.be.lessThan(5000)
          await process.kill()
        }
      } finally {
        await Promise.all(clients.map((client) => client.kill()))
        for (const process of installation.processes) if (!process.running) await process.start()
      }
      await waitFor(() => kubectl(installation.admin, ['get', 'memberclusters.kcp.dev']), {
        what: 'the API to answer again',
        deadlineMs: 40_000,
      })
    })

    /** Some clients of each kind, each of them seen to work. */
    async function holdOpen(): Promise<ManagedProcess[]> {
      const pod = 'deployment/toolbox'
      const pause = ['exec', pod, '-c', 'web', '--', '/agnhost', 'pause']
      const clients = await Promise.all([
        ...['true', 'false'].map((webSocket) => stay(webSocket, pause)),
        ...['true', 'false'].map((webSocket) => stay(webSocket, ['port-forward', pod, ':8080'])),
        ...[1, 2, 3].map(() => stay('true', ['logs', '-f', pod, '-c', 'web', '--tail=1'])),
        stay('true', ['get', 'pods', '--all-namespaces', '--watch']),
      ])
      await waitFor(() => clients.every((client) => client.log() !== ''), {
        what: 'every client to have been answered',
        deadlineMs: 20_000,
      })
      return clients
    }
  })
}
