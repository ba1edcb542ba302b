// Numbers around 2^53, 2^63 and 2^64 in every place and on every way, compared with a real kube-apiserver digit by
// digit.
import { expect } from 'chai'
import { rounds } from '#test/support/index.ts'
import { differencesOf, type Case } from '#test/parity/generated/compare-cases.ts'
import { install, objectsPath, groupOf } from '#test/parity/crds/sample-crd.ts'
import { prepareRun } from '#test/parity/support/compare-rows.ts'
import { Session, valueAt, type PatchType } from '#test/parity/support/session.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'
import { numberLiterals } from './literals.ts'
import { numbersSample, word } from './sample.ts'

const seed = Number(process.env['KCP_SEED'] ?? 53)
const random = rounds({ short: 4, long: 200 })
const table = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } }
const yaml = { headers: { 'content-type': 'application/yaml' } }
const asYaml = { headers: { accept: 'application/yaml' } }

const custom = (name: string, spec: string): string =>
  `{"apiVersion":"${groupOf(word)}/v1","kind":"Number","metadata":{"name":"${name}"},"spec":{${spec}}}`
/** Records the lines of the YAML form with digits in any order: the order of fields is each server's own. */
async function yamlLines(session: Session, path: string): Promise<void> {
  const { body } = await session.get(path, { ...asYaml, quiet: true })
  const spec = typeof body === 'string' ? body.slice(body.indexOf('\nspec:')) : ''
  session.note(`YAML of ${path}`, [...spec.matchAll(/\S*\d\S*/g)].map(([text]) => text).sort())
}

/**
 * Records the status, the spec and the end of the message: it quotes the patched document, whose order of fields is
 * each server's own.
 */
async function patched(session: Session, path: string, body: string, type: PatchType): Promise<void> {
  const { status, body: answer, warnings } = await session.patch(dryRun(path), body, type, { quiet: true })
  const message = valueAt(answer, 'message')
  const why = typeof message === 'string' ? (message.split('": ').at(-1) ?? '') : null
  session.note(`${type} ${path}`, [status, why, valueAt(answer, 'spec') ?? null, [...warnings]])
}

const dryRun = (path: string): string => `${path}${path.includes('?') ? '&' : '?'}dryRun=All`

/**
 * Fields where a real server tells `1.0` from `1`: it takes a number with a fraction or an exponent for a float until
 * it has stored it. Here a whole number within 2^53 is an integer.
 */
const tellsFloats = new Set(['half', 'high', 'ruled', 'choice'])
const isWholeFloat = (literal: string): boolean => !/^-?\d+$/.test(literal) && Number.isSafeInteger(Number(literal))

/** Fields of the sample that take a number in different ways. */
const fields = [
  'int',
  'int64',
  'int32',
  'number',
  'float',
  'intOrString',
  'bounded',
  'high',
  'multiple',
  'half',
  'choice',
  'ruled',
  'dynamic',
]

function customCase(literal: string, index: number): Case {
  return {
    title: `${literal} in a custom resource`,
    async run(session) {
      const name = `n${index}`
      const whole = isWholeFloat(literal)
      // A real server rounds numbers in the keys of managedFields once it has read them again; here they stay exact.
      const without = Number.isSafeInteger(Number(literal))
        ? []
        : ['metadata.managedFields', 'rows.0.object.metadata.managedFields']
      const [all, one] = [objectsPath(word), objectsPath(word, name)]
      for (const field of fields.filter((one) => !whole || !tellsFloats.has(one)))
        await session.send('POST', dryRun(all), { body: custom(name, `"${field}":${literal}`) })
      await session.send('POST', dryRun(all), { ...yaml, body: custom(name, `"any":[${literal}]`) })
      await session.send('POST', dryRun(all), {
        ...yaml,
        body: `apiVersion: ${groupOf(word)}/v1\nkind: Number\nmetadata:\n  name: ${name}\nspec:\n  any:\n  - ${literal}\n  number: ${literal}\n`,
      })
      const { status } = await session.send('POST', all, {
        body: custom(name, `"any":{"a":[${literal}]},"set":[${literal}],"map":[{"id":${literal}}],"picked":${literal}`),
      })
      if (status !== 201)
        await session.send('POST', all, {
          body: custom(name, `"any":{"a":[${isFinite(Number(literal)) ? literal : 1}]}`),
        })
      await session.get(one, { without })
      await yamlLines(session, one)
      await session.get(one, { ...table, without })
      await session.patch(one, `{"spec":{"any":{"b":${literal}}}}`, 'merge', { without })
      await session.patch(
        one,
        `[{"op":"test","path":"/spec/any/b","value":${literal === '-0' ? '0' : literal}},{"op":"copy","from":"/spec/any/a","path":"/spec/any/c"},{"op":"add","path":"/spec/any/d","value":${literal}}]`,
        'json',
        { without: [...without, 'details.causes'] },
      )
      for (const field of ['any', 'int', 'number', 'ruled'])
        await session.patch(`${one}?fieldManager=applier&force=true`, custom(name, `"${field}":${literal}`), 'apply', {
          without,
        })
      await session.patch(`${one}?fieldManager=other`, custom(name, `"any":${literal}`), 'apply', { without })
      await session.get(one, { without })
      // An update that changes nothing.
      const { body } = await session.get(one, { quiet: true })
      const same = JSON.stringify(body).replace(/"number (-?[\d.eE+-]+)"/g, '$1')
      await session.send('PUT', one, { body: same, without })
      await session.get(`${all}?fieldSelector=${encodeURIComponent(`spec.picked=${literal},metadata.name=${name}`)}`, {
        without: ['items.0.metadata.managedFields'],
      })
      await session.delete(one)
    },
  }
}

const pod = (name: string, toleration: string): string =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":[{"operator":"Exists","effect":"NoExecute"${toleration}}]}}`
const deployment = (name: string, spec: string, podSpec: string): string =>
  `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"${name}"},"spec":{"selector":{"matchLabels":{"a":"b"}}${spec},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]${podSpec}}}}}`

function builtInCase(literal: string, index: number): Case {
  return {
    title: `${literal} in built-in kinds`,
    async run(session) {
      const [pods, deployments] = ['/api/v1/namespaces/$NS/pods', '/apis/apps/v1/namespaces/$NS/deployments']
      const [name, one] = [`p${index}`, `${pods}/p${index}`]
      const { status } = await session.send('POST', pods, { body: pod(name, `,"tolerationSeconds":${literal}`) })
      if (status !== 201) await session.send('POST', pods, { body: pod(name, '') })
      await session.get(one)
      for (const body of [
        deployment(name, `,"replicas":${literal}`, ''),
        deployment(name, '', `,"terminationGracePeriodSeconds":${literal}`),
        deployment(name, '', `,"securityContext":{"runAsUser":${literal}}`),
        deployment(name, '', `,"nodeSelector":{"a":${literal}}`),
        deployment(name, `,"strategy":{"rollingUpdate":{"maxSurge":${literal}}}`, ''),
      ])
        await session.send('POST', dryRun(deployments), { body })
      const path = `${deployments}/kept`
      const seconds = `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":${literal}}}}}`
      const operation = `[{"op":"add","path":"/spec/template/spec/terminationGracePeriodSeconds","value":${literal}}]`
      for (const type of ['merge', 'strategic'] as const) {
        await patched(session, path, seconds, type)
        await patched(session, path, `{"spec":{"replicas":${literal}}}`, type)
      }
      await patched(session, path, operation, 'json')
      if (Number.isInteger(Number(literal)))
        await patched(
          session,
          `${path}?fieldManager=applier&force=true`,
          deployment('kept', '', `,"terminationGracePeriodSeconds":${literal}`),
          'apply',
        )
      const memory = (kind: string): string =>
        `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"${name}"},"spec":{"limits":[{"type":"Container","${kind}":{"memory":${literal}}}]}}`
      // Exponents of quantities are another subject.
      if (!/[eE]\D*\d{3}/.test(literal))
        await session.send('POST', dryRun('/api/v1/namespaces/$NS/limitranges'), { body: memory('max') })
      await session.delete(one, { gracePeriodSeconds: 0 })
    },
  }
}

describe('numbers are those of a real server', function () {
  this.timeout(900_000)
  let servers: TwoServers
  let run: { id: string; namespace: string }

  before(async () => {
    servers = await startTwoServers({ name: 'numbers' })
    run = await prepareRun([servers.real, servers.ours])
    for (const session of [new Session(servers.real, run), new Session(servers.ours, run)]) {
      await install(session, numbersSample)
      await session.send('POST', '/apis/apps/v1/namespaces/$NS/deployments', {
        quiet: true,
        body: deployment('kept', '', ''),
      })
    }
  })
  after(() => servers[Symbol.asyncDispose]())

  const check = async (make: (literal: string, index: number) => Case): Promise<void> => {
    const only = process.env['KCP_LITERALS']?.split(',')
    const cases = (only ?? numberLiterals({ thorough: rounds({ short: 0, long: 1 }) === 1, random, seed })).map(make)
    const told = await differencesOf(cases, servers, { run, known: [] })
    for (const difference of told) process.stderr.write(`${difference}\n`)
    expect(told.length, `different of ${cases.length} (KCP_SEED=${seed})`).to.equal(0)
  }

  it('in custom resources', () => check(customCase))
  it('in built-in kinds', () => check(builtInCase))
})
