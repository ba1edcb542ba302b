import { expect } from 'chai'
import { StatusError } from '../../apimachinery/status/index.ts'
import { Catalog } from '../registry/catalog.ts'
import type { ResourceDefinition } from '../registry/resource-definition.ts'
import { decodeBody, objectOf, type FieldValidation } from './read-object.ts'

const deployments = new Catalog().findBuiltIn({ group: 'apps', version: 'v1', resource: 'deployments' })
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
    objectOf(decodeBody(Buffer.from(body), 'application/json'), { definition, fieldValidation, warnings })
    return { message: '', warnings }
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    return { message: error.status.message ?? '', warnings }
  }
}

describe('complaints about the fields of a body', () => {
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

  it('are warnings unless told otherwise, and nothing on Ignore', () => {
    const text = body('Deployment', 'apps/v1')
    const warned = read(text, { definition: deployments, fieldValidation: 'Warn' })
    expect(warned).to.deep.equal({ message: '', warnings: [unknown, twice] })
    const ignored = read(text, { definition: deployments, fieldValidation: 'Ignore' })
    expect(ignored).to.deep.equal({ message: '', warnings: [] })
  })
})
