import { expect } from 'chai'
import { StatusError } from '#apimachinery/status/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { decodeObjectBody, objectOf, type FieldValidation } from './read-object.ts'

const deployments = new ClusterCatalog().findBuiltIn({ group: 'apps', version: 'v1', resource: 'deployments' })
if (deployments === undefined) throw new Error('deployments are not built in')
const widgets: ResourceDefinition = {
  ...deployments,
  info: { ...deployments.info, group: 'e.com', kind: 'Widget', resource: 'widgets', builtIn: false },
}

function read(
  body: string,
  { definition, fieldValidation }: { definition: ResourceDefinition; fieldValidation: FieldValidation },
): { message: string; warnings: string[] } {
  const warnings: string[] = []
  try {
    objectOf(decodeObjectBody(Buffer.from(body), 'application/json', definition.info.kind), {
      definition,
      fieldValidation,
      warnings,
    })
    return { message: '', warnings }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return { message: error.status.message ?? '', warnings }
  }
}

describe('errors about unknown and duplicate fields', () => {
  const body = (kind: string, apiVersion: string): string =>
    `{"apiVersion":"${apiVersion}","kind":"${kind}","metadata":{"name":"d"},"spec":{"wrong":1,"replicas":2,"replicas":3}}`
  const unknown = 'unknown field "spec.wrong"'
  const twice = 'duplicate field "spec.replicas"'

  it('of a built-in kind begin with unknown fields', () => {
    const { message } = read(body('Deployment', 'apps/v1'), { definition: deployments, fieldValidation: 'Strict' })
    const head = 'Deployment in version "v1" cannot be handled as a Deployment: '
    expect(message).to.equal(`${head}strict decoding error: ${unknown}, ${twice}`)
  })

  it('of a custom resource begin with duplicates', () => {
    const { message } = read(body('Widget', 'e.com/v1'), { definition: widgets, fieldValidation: 'Strict' })
    const head = 'Widget in version "v1" cannot be handled as a Widget: '
    expect(message).to.equal(`${head}strict decoding error: ${twice}, ${unknown}`)
  })

  it('are warnings with Warn, and dropped with Ignore', () => {
    const text = body('Deployment', 'apps/v1')
    const warned = read(text, { definition: deployments, fieldValidation: 'Warn' })
    expect(warned).to.deep.equal({ message: '', warnings: [unknown, twice] })
    const ignored = read(text, { definition: deployments, fieldValidation: 'Ignore' })
    expect(ignored).to.deep.equal({ message: '', warnings: [] })
  })
})

describe('a body whose kind cannot be read', () => {
  const head = 'the object provided is unrecognized (must be of type Deployment): '
  const syntax = `${head}couldn't get version/kind; json parse error: `
  const struct = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`
  for (const [body, message] of [
    ['apiVersion: v1', `${syntax}invalid character 'a' looking for beginning of value (61706956657273696f6e3a207631)`],
    ['{"a":', `${syntax}unexpected end of JSON input ({"a":)`],
    ['', `${syntax}unexpected end of JSON input (<empty>)`],
    ['[1]', `${syntax}json: cannot unmarshal array into Go value of type ${struct} (5b315d)`],
    ['{"kind":5}', `${syntax}json: cannot unmarshal number into Go struct field .kind of type string ({"kind":5})`],
    [
      '{"metadata":{"name":"abc"}} trailing',
      `${syntax}invalid character 't' after top-level value ({"metadata":{"name":"abc"}} tr ...)`,
    ],
    ['null', ''],
    [
      '{"kind":"Pod","apiVersion":"v1"}',
      'Pod in version "v1" cannot be handled as a Deployment: converting (v1.Pod) to (apps.Deployment): unknown conversion',
    ],
  ] as const)
    it(`is refused with kube-apiserver's message: ${body}`, () => {
      expect(read(body, { definition: deployments, fieldValidation: 'Warn' }).message).to.equal(message)
    })
})
