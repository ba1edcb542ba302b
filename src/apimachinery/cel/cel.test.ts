import { expect } from 'chai'
import {
  type AuthorizationQuestion,
  authorizerType,
  authorizerValue,
  type CelAuthorizer,
  compileExpression,
  declaredType,
  dynamicValue,
  dynType,
  escapeFieldName,
  type Extension,
  extendEnvironment,
  jsonOf,
  kubernetesEnvironment,
  listOf,
  maxCardinality,
  mutationFunctions,
  JsonRoom,
  mutationJson,
  mutationStructs,
  type ObjectValue,
  type Outcome,
  PatchValue,
  Program,
  requestResourceValue,
  resourceCheckType,
  structType,
  typedValue,
  unescapeFieldName,
  type Value,
} from './index.ts'

function compiled(text: string, extension: Extension = {}): Program {
  const program = compileExpression(text, extendEnvironment(kubernetesEnvironment(), extension))
  if (!(program instanceof Program)) throw new Error(program.message)
  return program
}

function failure(text: string): string {
  const program = compileExpression(text, kubernetesEnvironment())
  return program instanceof Program ? 'it compiled' : program.message
}

const run = (program: Program, values: Record<string, Value> = {}): Outcome =>
  program.run(new Map(Object.entries(values)))

describe('limits of expressions', () => {
  const loops = 'lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))'

  it('ends a run that costs more than it may', () => {
    const { cancelled, error, cost } = compiled(loops).run(new Map(), { costLimit: 1000 })
    expect({ cancelled, error, cost }).to.deep.equal({
      cancelled: true,
      error: 'operation cancelled: actual cost limit exceeded',
      cost: 1011,
    })
  })

  it('does not compile a pattern of too many instructions, neither one of the expression nor one of the object', () => {
    const large = '(a{1000})'.repeat(100)
    expect(failure(`'a'.matches('${large}')`)).to.contain('matches')
    const variables = { s: dynType, p: dynType }
    for (const text of ['s.matches(p)', 's.find(p) == ""', 's.findAll(p).size() == 0']) {
      const { error } = run(compiled(text, { variables }), { s: 'a', p: large })
      expect(error, text).to.contain('expression too large')
    }
  })

  it('ends a run that nobody waits for', () => {
    let asked = 0
    const outcome = compiled(loops).run(new Map(), { costLimit: Infinity, isInterrupted: () => ++asked > 3 })
    expect(outcome).to.include({ cancelled: true, error: 'operation interrupted' })
  })

  for (const { title, text, error } of [
    {
      title: 'a value that holds itself many times over',
      text: `[[1]]${'.map(x, [x, x])'.repeat(40)} == [[1]]${'.map(x, [x, x])'.repeat(40)}`,
      error: 'operation cancelled: actual cost limit exceeded',
    },
    { title: 'a text that grows without end', text: 's.replace("", s)', error: 'string is too large' },
    {
      title: 'texts that are joined without end',
      text: '[s, s].map(x, s).join(s.replace("x", s))',
      error: 'string is too large',
    },
  ])
    it(`ends ${title}`, () => {
      const program = compiled(text, { variables: { s: dynType }, homogeneousLiterals: false })
      expect(run(program, { s: 'x'.repeat(100_000) }).error).to.equal(error)
    })

  it('refuses an expression that macros double again and again', () => {
    const message = failure(`optional.of(1)${'.optMap(x, x)'.repeat(40)}`)
    expect(message).to.equal('ERROR: <input>:-1:0: expression is too large after its macros are expanded')
  })

  it('refuses an expression whose types double again and again', () => {
    expect(failure(`[1]${'.map(x, {x: x})'.repeat(60)}`)).to.include('its types are too large')
  })

  it('reports no more than 100 syntax errors', () => {
    expect(failure('#'.repeat(5000)).match(/token recognition error/g)).to.have.length(100)
  })

  it('answers a pattern in linear time', () => {
    const program = compiled('s.matches("^(a+)+$")', { variables: { s: dynType } })
    expect(run(program, { s: `${'a'.repeat(20_000)}!` }).value).to.equal(false)
  })
})

describe('authorizer in expressions', () => {
  const asked: AuthorizationQuestion[] = []
  const authorizer = (user: string): CelAuthorizer => ({
    authorize: (question) => {
      asked.push(question)
      return { allowed: user === 'ns/sa', reason: `asked by ${user}` }
    },
    asServiceAccount: (namespace, name) => authorizer(`${namespace}/${name}`),
  })
  const variables = { authorizer: authorizerType, request: resourceCheckType }
  const values = {
    authorizer: authorizerValue(authorizer('somebody')),
    request: requestResourceValue(authorizer('somebody'), {
      group: 'apps',
      resource: 'deployments',
      subresource: '',
      namespace: 'a',
      name: 'b',
    }),
  }
  const check =
    'group("").resource("pods").namespace("n").name("p").subresource("log").labelSelector("a=b").check("get")'

  for (const { text, value, cost } of [
    { text: `authorizer.${check}.allowed()`, value: false, cost: 350_009 },
    { text: `authorizer.serviceAccount("ns", "sa").${check}.allowed()`, value: true, cost: 350_010 },
    { text: 'authorizer.path("/healthz").check("get").reason()', value: 'asked by somebody', cost: 350_003 },
    { text: 'request.check("create").errored()', value: false, cost: 350_002 },
  ])
    it(`answers ${text}`, () => {
      const outcome = run(compiled(text, { variables }), values)
      expect(outcome.value).to.equal(value)
      expect(outcome.cost).to.be.within(cost, cost + 130)
    })

  it('passes on what was asked', () =>
    expect(asked).to.deep.include({
      kind: 'resource',
      group: '',
      resource: 'pods',
      subresource: 'log',
      namespace: 'n',
      name: 'p',
      fieldSelector: '',
      labelSelector: 'a=b',
      verb: 'get',
    }))

  it('refuses a service account that cannot be', () => {
    const outcome = run(
      compiled('authorizer.serviceAccount("ns", "S").path("/").check("get").allowed()', { variables }),
      values,
    )
    expect(outcome.error).to.equal('Invalid service account name')
  })
})

describe('mutations in expressions', () => {
  const extension: Extension = {
    structs: mutationStructs,
    functions: mutationFunctions,
    variables: { object: dynType },
  }
  const object = dynamicValue({ spec: { replicas: 2 } })

  it('makes an apply configuration', () => {
    const program = compiled(
      'Object{spec: Object.spec{replicas: object.spec.replicas + 1, list: [{"a": 1.5}]}}',
      extension,
    )
    expect(program.outputType).to.deep.equal(structType('Object'))
    const { value } = run(program, { object })
    expect(mutationJson(value ?? null, new JsonRoom(1000))).to.deep.equal({ spec: { replicas: 3, list: [{ a: 1.5 }] } })
    expect((value as ObjectValue).typeErrors(new JsonRoom(1000))).to.deep.equal([])
  })

  it('tells the types that do not repeat the path of fields', () => {
    const { value } = run(compiled('Object{spec: Object.status{}}', extension))
    expect((value as ObjectValue).typeErrors(new JsonRoom(1000))).to.deep.equal([
      'unexpected type name "Object.status", expected "Object.spec", which matches field name path from root Object type',
    ])
  })

  it('makes a JSON patch', () => {
    const text = '[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("a/b~c"), value: "x"}]'
    const program = compiled(text, extension)
    expect(program.outputType).to.deep.equal(listOf(structType('JSONPatch')))
    const { value } = run(compiled(`${text}[0]`, extension))
    expect(value)
      .to.be.instanceOf(PatchValue)
      .and.to.include({ op: 'add', path: '/metadata/labels/a~1b~0c', value: 'x' })
  })
})

describe('a program', () => {
  it('may be run by any number of callers', () => {
    const program = compiled('[1, 2, 3].map(x, x + n)', { variables: { n: dynType } })
    const sums = [1, 2, 3].map((n) => run(program, { n }).value)
    expect(sums.map((list) => mutationJson(list ?? null, new JsonRoom(1000)))).to.deep.equal([
      [2, 3, 4],
      [3, 4, 5],
      [4, 5, 6],
    ])
  })

  it('tells which variables it uses', () => {
    const program = compiled('oldSelf == 1 || true', { variables: { self: dynType, oldSelf: dynType } })
    expect([program.uses('oldSelf'), program.uses('self')]).to.deep.equal([true, false])
  })
})

describe('names of fields in expressions', () => {
  for (const { name, identifier } of [
    { name: 'plain_1', identifier: 'plain_1' },
    { name: 'a-b', identifier: 'a__dash__b' },
    { name: 'a.b/c', identifier: 'a__dot__b__slash__c' },
    { name: '__u', identifier: '__underscores__u' },
    { name: 'namespace', identifier: '__namespace__' },
    { name: 'true', identifier: '__true__' },
    { name: '9a', identifier: undefined },
    { name: 'a b', identifier: undefined },
    { name: '', identifier: undefined },
  ])
    it(`writes "${name}" as ${identifier ?? 'nothing'}`, () => {
      expect(escapeFieldName(name)).to.equal(identifier)
      if (identifier !== undefined) expect(unescapeFieldName(identifier)).to.equal(name)
    })

  it('knows no field of an unknown escape', () => expect(unescapeFieldName('a__foo__b')).to.equal(undefined))
})

describe('declared types', () => {
  const port = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } } as const

  it('tell how often a value can be in one request', () => {
    const type = declaredType({ ...port, required: ['name'] }, 'port')
    expect(type && { size: type.minSerializedSize, times: maxCardinality(type) }).to.deep.equal({
      size: 12,
      times: 241979,
    })
  })

  it('give JSON back as it came', () => {
    const json = [{ name: 'a' }, { name: 'b' }]
    expect(
      jsonOf(typedValue(json, { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } })),
    ).to.equal(json)
  })
})
