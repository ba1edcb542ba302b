// The pure functions behind the pages.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { historyAnnotation, placedOnAnnotation } from '#crds/index.ts'
import type { AnyObject } from '#console/kube/objects.ts'
import { LineBuffer } from '#console/kube/lines.ts'
import { ageText } from './age.ts'
import { auditLine, matchingLines } from './audit-line.ts'
import { clustersInOrder } from './cluster-order.ts'
import { consumersOf, targetOfProfile } from './consumers.ts'
import { channels, endText, frame, parseFrame, resizeFrame } from './exec-frames.ts'
import { LogBuffer, matchParts, searchLines } from './log-buffer.ts'
import { moveBoard } from './moves.ts'
import { ownedBy, type Candidate } from './owned.ts'
import { reasonTexts } from './reasons.ts'
import { schemaAt, schemaOfKind } from './schema-at.ts'
import { conditionTone, toneOf } from './tone.ts'
import { byShare, limitShares } from './usage.ts'
import { logText, visibleText } from './visible-text.ts'
import { placeIn, withoutManagedFields, withRevisionOf } from './yaml-text.ts'

describe('usage beside limits', () => {
  const full = { name: 'full', limits: { objects: 10, memory: '1Gi' }, used: { objects: 10, memory: '512Mi' } }
  it('has the fullest limit first, and bytes as people write them', () => {
    expect(limitShares(full)).to.deep.equal([
      { field: 'objects', used: '10', limit: '10', share: 1 },
      { field: 'memory', used: '512 MiB', limit: '1 GiB', share: 0.5 },
    ])
    expect(limitShares({ limits: { pods: 0, crds: 3 }, used: { pods: 0 } })).to.deep.equal([
      { field: 'pods', used: '0', limit: '0', share: undefined },
      { field: 'crds', used: '', limit: '3', share: undefined },
    ])
  })
  it('orders logical clusters by it, and leaves out those without limits', () => {
    const empty = { name: 'empty', limits: { objects: 10 }, used: { objects: 1 } }
    expect(byShare([{ name: 'free' }, empty, full]).map(({ name }) => name)).to.deep.equal(['full', 'empty'])
  })
})

describe('a line of an audit log', () => {
  const event = {
    auditID: 'a1',
    stage: 'ResponseComplete',
    verb: 'create',
    requestURI: '/api/v1/namespaces/shop/configmaps',
    user: { username: 'admin' },
    impersonatedUser: { username: 'alice' },
    objectRef: { resource: 'configmaps', namespace: 'shop', name: 'one' },
    responseStatus: { code: 403 },
    requestReceivedTimestamp: '2026-11-28T00:00:00.000000Z',
    annotations: { 'kcp.dev/audit-position': 'p-7' },
  }
  it('says who did what, to which object, with what result', () => {
    const line = auditLine(JSON.stringify(event))
    expect(line).to.include({ user: 'alice (admin)', verb: 'create', code: '403', isRefused: true })
    expect(line).to.include({ object: 'shop/configmaps/one', key: 'a1 ResponseComplete' })
  })
  it('is none for other JSON, and for what is no JSON', () => {
    for (const text of ['{"kind":"Status"}', '{', '""', 'null']) expect(auditLine(text), text).to.equal(undefined)
  })
  it('is found by all words, and without those after !', () => {
    const lines = [event, { ...event, auditID: 'a2', verb: 'delete' }].map((one) => auditLine(JSON.stringify(one)))
    const found = (filter: string) =>
      matchingLines(
        lines.filter((line) => line !== undefined),
        filter,
      ).map(({ verb }) => verb)
    expect(found('ALICE shop/')).to.deep.equal(['create', 'delete'])
    expect(found('alice !delete')).to.deep.equal(['create'])
    expect(found('bob')).to.deep.equal([])
  })
})

describe('text of a cluster', () => {
  it('shows control characters and directions instead of obeying them', () => {
    expect(visibleText('a\u001b]0;title\u0007b')).to.equal('a^[]0;title^Gb')
    expect(visibleText('\u202egnp.exe')).to.equal('⟨U+202E⟩gnp.exe')
    expect(visibleText('tab\tis\u007fkept')).to.equal('tab\tis^?kept')
    expect(visibleText('\u009b2J')).to.equal('⟨U+009B⟩2J')
  })
  it('drops the colours of a log line and keeps other sequences visible', () => {
    expect(logText('\u001b[1;31mERROR\u001b[0m \u001b[2Jgone')).to.equal('ERROR ^[[2Jgone')
  })
})

describe('lines of a stream', () => {
  it('joins pieces and splits at line feeds', () => {
    const lines = new LineBuffer()
    expect(lines.push('{"a":')).to.deep.equal([])
    expect(lines.push('1}\n{"b":2}\n\n{')).to.deep.equal(['{"a":1}', '{"b":2}'])
    expect(lines.push('}\n')).to.deep.equal(['{}'])
  })
  it('keeps empty lines of logs, and cuts a line without an end', () => {
    const lines = new LineBuffer({ keepEmpty: true, maxLength: 4 })
    expect(lines.push('a\n\nb\n')).to.deep.equal(['a', '', 'b'])
    expect(lines.push('12345')).to.deep.equal(['12345'])
    expect(lines.push('6\n')).to.deep.equal(['6'])
  })
})

describe('a log', () => {
  it('keeps the last lines and counts the others', () => {
    const buffer = new LogBuffer(3)
    buffer.add('a', ['1', '2'])
    buffer.add('b', ['3', '4'])
    expect(buffer.lines.map(({ text }) => text)).to.deep.equal(['2', '3', '4'])
    expect(buffer.dropped).to.equal(1)
  })
  it('is searched in any case', () => {
    const lines = [{ number: 0, container: 'a', text: 'An Error' }]
    expect(searchLines(lines, 'error')).to.deep.equal(lines)
    expect(matchParts('An Error, an error', 'error')).to.deep.equal(['An ', 'Error', ', an ', 'error', ''])
  })
})

describe('frames of exec', () => {
  it('carry their channel in the first byte', () => {
    const bytes = frame(channels.stdin, new TextEncoder().encode('ls\n'))
    expect([...bytes]).to.deep.equal([0, 108, 115, 10])
    expect(parseFrame(bytes.buffer)?.channel).to.equal(0)
    expect(parseFrame(new ArrayBuffer(0))).to.equal(undefined)
    expect(new TextDecoder().decode(resizeFrame(80, 24).subarray(1))).to.equal('{"Width":80,"Height":24}')
  })
  it('say why a command has ended', () => {
    const text = (value: object): string => endText(new TextEncoder().encode(JSON.stringify(value)))
    expect(text({ status: 'Success' })).to.equal('')
    expect(text({ status: 'Failure', message: 'exit code 2' })).to.equal('exit code 2')
  })
})

describe('YAML as text', () => {
  const yaml = [
    'kind: Deployment',
    'metadata:',
    '  name: web',
    '  managedFields:',
    '  - manager: kubectl',
    '    fieldsV1: {}',
    '  resourceVersion: "5"',
    'spec:',
    '  template:',
    '    spec:',
    '      containers:',
    '      - name: web',
    '        ',
  ].join('\n')

  it('loses metadata.managedFields and nothing else', () => {
    expect(withoutManagedFields(yaml)).to.equal(yaml.replace(/ {2}managedFields:\n.*\n.*\n/, ''))
    const inSpec = 'metadata:\n  name: a\nspec:\n  managedFields: 1\n'
    expect(withoutManagedFields(inSpec)).to.equal(inSpec)
  })
  it('takes the revision of the latest', () => {
    expect(
      withRevisionOf(
        yaml,
        yaml.replace('"5"', () => '"$&9"'),
      ),
    ).to.include('resourceVersion: "$&9"')
  })

  for (const { at, path, kind } of [
    { at: yaml, path: ['spec', 'template', 'spec', 'containers', '-'], kind: 'key' },
    {
      at: `${yaml}imagePullPolicy: `,
      path: ['spec', 'template', 'spec', 'containers', '-', 'imagePullPolicy'],
      kind: 'value',
    },
    { at: 'spec:\n  rep', path: ['spec'], kind: 'key' },
    { at: 'spec:\n  replicas: 2\nsta', path: [], kind: 'key' },
    { at: 'spec:\n  ports:\n  - port: 80\n    na', path: ['spec', 'ports', '-'], kind: 'key' },
    { at: 'spec:\n  ports:\n  - port: 80\n  - na', path: ['spec', 'ports', '-'], kind: 'key' },
    { at: 'spec:\n  ports:\n  - port: 80\n  sel', path: ['spec'], kind: 'key' },
    { at: 'spec:\n  a:\n    b:\n      - c: 1\n        d', path: ['spec', 'a', 'b', '-'], kind: 'key' },
  ])
    it(`knows that the end of ${JSON.stringify(at.slice(-24))} is at ${path.join('.') || 'the root'}`, () =>
      expect(placeIn(at, at.length)).to.deep.equal({ path, at: kind }))
})

describe('the schema of a place', () => {
  const document = {
    components: {
      schemas: {
        Deployment: {
          'x-kubernetes-group-version-kind': [{ group: 'apps', version: 'v1', kind: 'Deployment' }],
          properties: { spec: { allOf: [{ $ref: '#/components/schemas/Spec' }], description: 'what' } },
        },
        Spec: { properties: { ports: { type: 'array', items: { $ref: '#/components/schemas/Port' } } } },
        Port: { properties: { protocol: { type: 'string', enum: ['TCP', 'UDP'] } } },
        Circle: { $ref: '#/components/schemas/Circle' },
      },
    },
  }
  const root = schemaOfKind(document, { group: 'apps', version: 'v1', kind: 'Deployment' })

  it('follows references and lists', () => {
    expect(schemaAt(document, root ?? {}, ['spec', 'ports', '-', 'protocol'])?.enum).to.deep.equal(['TCP', 'UDP'])
    expect(schemaAt(document, root ?? {}, ['spec', 'constructor'])).to.equal(undefined)
  })
  it('ends in a circle', () => {
    expect(schemaAt(document, { $ref: '#/components/schemas/Circle' }, ['a'])).to.equal(undefined)
  })
})

describe('the tree of owned objects', () => {
  it('has the pods of a ReplicaSet below it, and ends in a circle', () => {
    const one = (name: string, owner: string): Candidate => ({
      resource: { group: '', version: 'v1', resource: 'pods', kind: 'Pod' },
      metadata: { name, uid: name, ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: owner, uid: owner }] },
    })
    const [set] = ownedBy('deployment', [one('set', 'deployment'), one('pod', 'set'), one('other', 'none')])
    expect(set?.metadata.name).to.equal('set')
    expect(set?.owned.map(({ metadata }) => metadata.name)).to.deep.equal(['pod'])
    expect(ownedBy('a', [one('a', 'b'), one('b', 'a')]).length).to.equal(1)
  })
})

describe('the move board', () => {
  const workload = (name: string, placed: object, history: object[] = []): AnyObject => ({
    kind: 'Deployment',
    metadata: {
      name,
      namespace: 'shop',
      annotations: { [placedOnAnnotation]: JSON.stringify(placed), [historyAnnotation]: JSON.stringify(history) },
    },
  })
  const wait = { gate: 'RolloutComplete', since: '2026-01-01T00:00:00Z', until: '2026-01-01T00:10:00Z', then: 'Held' }
  const move = { time: '2026-01-01T00:00:00Z', from: ['west'], to: ['east'], cause: 'Edit', message: 'edited' }

  it('has each move with its gate and deadline, and the last ones that are complete', () => {
    const board = moveBoard([
      workload('moves', { west: { state: 'Serving' }, east: { state: 'Applied', wait } }, [move]),
      workload('moved', { east: { state: 'Serving' } }, [move]),
      workload('still', { east: { state: 'Serving' } }),
    ])
    expect(board.moving.map(({ object }) => object.metadata.name)).to.deep.equal(['moves'])
    expect(board.done.map(({ object }) => object.metadata.name)).to.deep.equal(['moved'])
    expect(board.placed).to.equal(3)
    expect(board.moving[0]?.copies[1]).to.include({
      gate: 'RolloutComplete',
      waitsFor: 'its pods to be ready',
      until: wait.until,
    })
    expect(board.moving[0]?.newest).to.include({ cause: 'Edit' })
  })
  it('does not fail on annotations of any content', () => {
    for (const text of ['', '[]', 'null', '{"a":1}', '{"a":{"state":"Nonsense"}}', '{'])
      expect(() =>
        moveBoard([
          { metadata: { name: 'a', annotations: { [placedOnAnnotation]: text, [historyAnnotation]: text } } },
        ]),
      ).not.to.throw()
  })
})

describe('the list of logical clusters', () => {
  const all = [
    { name: 'b', ready: true },
    { name: 'a', ready: true },
    { name: 'c', ready: false, reason: 'Deleting' },
  ]
  it('has those that are not ready first', () =>
    expect(clustersInOrder(all, '', undefined).map(({ name }) => name)).to.deep.equal(['c', 'a', 'b']))
  it('is filtered by words and by their absence', () => {
    expect(clustersInOrder(all, 'deleting', undefined).map(({ name }) => name)).to.deep.equal(['c'])
    expect(clustersInOrder(all, '!deleting', undefined).map(({ name }) => name)).to.deep.equal(['a', 'b'])
  })
})

describe('words of a status', () => {
  it('have a tone', () => {
    expect(toneOf('CrashLoopBackOff')).to.equal('bad')
    expect(toneOf('Running')).to.equal('good')
    expect(toneOf('Pending')).to.equal('wait')
    expect(conditionTone({ type: 'Ready', status: 'True' })).to.equal('good')
    expect(conditionTone({ type: 'MemoryPressure', status: 'True' })).to.equal('bad')
    expect(conditionTone({ type: 'SyncFailing', status: 'False' })).to.equal('good')
  })
  it('and ages are those of kubectl', () => {
    const ago = (seconds: number): string => ageText(0, seconds * 1000)
    expect([5, 65, 600, 3 * 3600 + 120, 40 * 86_400].map(ago)).to.deep.equal(['5s', '1m5s', '10m', '3h2m', '40d'])
  })
})

describe('the consumers of a ClusterProfile', () => {
  const role = (name: string, rule: object) => ({ metadata: { name }, rules: [rule] })
  const binding = (name: string, kind = 'ClusterRole') => ({
    roleRef: { kind, name },
    subjects: [{ kind: 'ServiceAccount', namespace: 'fleet', name }],
  })
  const all = { apiGroups: ['virtual.kcp.dev'], verbs: ['create'] }
  const access = 'memberclusters/access'
  const roles = [
    role('one', { ...all, resources: [access], resourceNames: ['east'] }),
    role('every', { ...all, resources: ['*/access'] }),
    role('admin', { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }),
    role('other', { ...all, resources: [access], resourceNames: ['east-1'] }),
    role('reads', { ...all, resources: [access], verbs: ['get'] }),
    role('tenants', { ...all, resources: ['logicalclusters/access'] }),
    role('objects', { ...all, resources: ['memberclusters'] }),
    { metadata: { name: 'empty' }, rules: null },
  ]
  it('are those whose ClusterRoles give the right to its access, each once', () => {
    const bindings = [
      ...roles.map(({ metadata }) => binding(metadata.name)),
      binding('one'),
      binding('every', 'Role'),
      { roleRef: { kind: 'ClusterRole', name: 'one' }, subjects: null },
    ]
    const of = (profile: string) => consumersOf(targetOfProfile(profile), { roles, bindings })
    const names = (...of: string[]): string[] => of.map((name) => `ServiceAccount fleet/${name}`)
    expect(of('east')).to.deep.equal(names('admin', 'every', 'one'))
    expect(of('acme.logicalcluster')).to.deep.equal(names('admin', 'every', 'tenants'))
  })
})

describe('the reference of reasons', () => {
  it('has a text for each reason of the page', () => {
    const texts = reasonTexts(readFileSync('docs/reference/reasons.md', 'utf8'))
    expect(texts.size).to.be.greaterThan(80)
    expect(texts.get('NoClusterFits')).to.be.a('string').and.not.include('](')
  })
})
