import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { repositoryRoot } from '#test/support/cache-dir.ts'
import {
  createCommand,
  deleteCommand,
  inNode,
  internalKubeconfigCommand,
  kindName,
  loadCommand,
  networkCommand,
  readNetwork,
  routeCommands,
} from './commands.ts'
import { chooseProvider, type ContainerEngine } from './engine.ts'

const base = readFileSync(join(repositoryRoot, 'test/e2e/kind.yaml'), 'utf8')
const cluster = { engine: 'docker', name: kindName('abc123', 'east') } as const
const other = { engine: 'docker', name: kindName('abc123', 'west') } as const
const env = { KIND_EXPERIMENTAL_PROVIDER: 'docker' }

describe('the provider of test clusters', () => {
  const only =
    (running: ContainerEngine | undefined) =>
    (engine: ContainerEngine): Promise<boolean> =>
      Promise.resolve(engine === running)
  for (const { title, wanted, fallback, running, expected } of [
    { title: 'is the built-in one for tests', fallback: 'built-in', running: 'docker', expected: { kind: 'built-in' } },
    {
      title: 'is kind where it is wanted',
      wanted: 'kind',
      fallback: 'built-in',
      running: 'podman',
      expected: { kind: 'kind', engine: 'podman' },
    },
    {
      title: 'is kind for clusters to try out where an engine answers',
      fallback: 'any',
      running: 'docker',
      expected: { kind: 'kind', engine: 'docker' },
    },
    {
      title: 'is the built-in one where none answers',
      fallback: 'any',
      running: undefined,
      expected: { kind: 'built-in' },
    },
    {
      title: 'is the built-in one where that is wanted',
      wanted: 'built-in',
      fallback: 'any',
      running: 'docker',
      expected: { kind: 'built-in' },
    },
  ] as const)
    it(title, async () => {
      const answers = only(running)
      expect(await chooseProvider(wanted, { fallback, answers })).to.deep.equal(expected)
    })

  it('says what to do where kind is wanted and no engine answers, and for a word that it does not know', async () => {
    const answers = only(undefined)
    const failure = (wanted: string) =>
      chooseProvider(wanted, { fallback: 'built-in', answers }).catch((error: unknown) => String(error))
    expect(await failure('kind')).to.contain(
      'no container engine answers (docker, podman, nerdctl): start one, or unset it',
    )
    expect(await failure('minikube')).to.contain('set it to kind or built-in')
  })
})

describe('a cluster of kind', () => {
  it('is created with networks of its own, and its own kubeconfig file', () => {
    const networks = { podCidr: '10.70.64.0/24', serviceCidr: '10.70.128.0/24' }
    const { program, args, input, env: added } = createCommand(cluster, { base, kubeconfig: '/run/k', ...networks })
    expect([program, ...args].join(' ')).to.equal(
      'kind create cluster --name kcp-abc123-east --kubeconfig /run/k --config - --wait 180s',
    )
    expect(parse(input ?? '')).to.deep.equal({
      kind: 'Cluster',
      apiVersion: 'kind.x-k8s.io/v1alpha4',
      nodes: [{ role: 'control-plane' }],
      networking: { podSubnet: '10.70.64.0/24', serviceSubnet: '10.70.128.0/24' },
    })
    expect(added).to.deep.equal(env)
  })

  for (const { title, command, expected } of [
    {
      title: 'is deleted by its name',
      command: deleteCommand(cluster, '/run/k'),
      expected: 'kind delete cluster --name kcp-abc123-east --kubeconfig /run/k',
    },
    {
      title: 'loads images from an archive',
      command: loadCommand(cluster, '/tmp/kcp.tar'),
      expected: 'kind load image-archive /tmp/kcp.tar --name kcp-abc123-east',
    },
    {
      title: 'gives the kubeconfig that other containers use',
      command: internalKubeconfigCommand(cluster),
      expected: 'kind get kubeconfig --internal --name kcp-abc123-east',
    },
    {
      title: 'runs programs in its node',
      command: inNode(cluster, 'cat', ['/etc/hostname']),
      expected: 'docker exec kcp-abc123-east-control-plane cat /etc/hostname',
    },
    {
      title: 'is in the network of kind',
      command: networkCommand('podman'),
      expected: 'podman network inspect kind',
    },
  ])
    it(title, () => expect([command.program, ...command.args].join(' ')).to.equal(expected))

  it('has a route to the pods of another, and that to its own', () => {
    const routes = routeCommands(
      { cluster, address: '172.18.0.2', podCidr: '10.70.64.0/24' },
      { cluster: other, address: '172.18.0.3', podCidr: '10.70.65.0/24' },
    )
    expect(routes.map(({ args }) => args.join(' '))).to.deep.equal([
      'exec kcp-abc123-east-control-plane ip route replace 10.70.65.0/24 via 172.18.0.3',
      'exec kcp-abc123-west-control-plane ip route replace 10.70.64.0/24 via 172.18.0.2',
    ])
  })

  const node = 'kcp-abc123-east-control-plane'
  const expected = { gateway: '172.18.0.1', address: '172.18.0.2' }
  it('is found in what docker says of the network', () => {
    const Config = [
      { Subnet: 'fc00::/64', Gateway: 'fc00::1' },
      { Subnet: '172.18.0.0/16', Gateway: '172.18.0.1' },
    ]
    const Containers = { id: { Name: node, IPv4Address: '172.18.0.2/16' } }
    expect(readNetwork(JSON.stringify([{ IPAM: { Config }, Containers }]), node)).to.deep.equal(expected)
  })

  it('is found in what podman says of it', () => {
    const subnets = [{ subnet: '172.18.0.0/16', gateway: '172.18.0.1' }]
    const containers = { id: { name: node, interfaces: { eth0: { subnets: [{ ipnet: '172.18.0.2/16' }] } } } }
    expect(readNetwork(JSON.stringify([{ subnets, containers }]), node)).to.deep.equal(expected)
  })

  it('that is not in the network is told', () => {
    expect(() => readNetwork('[]', node)).to.throw(`for this machine and "${node}"`)
  })
})
