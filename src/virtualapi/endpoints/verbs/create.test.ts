import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { requireContentType, requireName, requireNamespace } from './create.ts'

function refusal(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    if (!isStatusError(error)) throw error
    return `${error.code} ${error.message}`
  }
}

describe('the namespace of an object in a body', () => {
  it('may be absent or that of the URL', () => {
    for (const metadata of [{}, { namespace: '' }, { namespace: 'shop' }])
      expect(refusal(() => requireNamespace(metadata, 'shop'))).to.equal(undefined)
  })
  it('may not be another one', () => {
    expect(refusal(() => requireNamespace({ namespace: 'other' }, 'shop'))).to.equal(
      '400 the namespace of the provided object does not match the namespace sent on the request',
    )
  })
  it('is dropped from cluster-scoped objects', () => {
    const metadata = { name: 'n', namespace: 'shop' }
    requireNamespace(metadata, '')
    expect(metadata).to.deep.equal({ name: 'n' })
  })
})

describe('the name of an object in a body', () => {
  for (const { given, error } of [
    { given: 'web', error: undefined },
    {
      given: undefined,
      error: '400 the name of the object (web based on URL) was undeterminable: name must be provided',
    },
    { given: '', error: '400 the name of the object (web based on URL) was undeterminable: name must be provided' },
    { given: 'db', error: '400 the name of the object (db) does not match the name on the URL (web)' },
  ])
    it(`${error === undefined ? 'may' : 'may not'} be ${given ?? 'absent'}${given === '' ? 'empty' : ''}`, () => {
      expect(refusal(() => requireName(given, 'web'))).to.equal(error)
    })
})

describe('the Content-Type of an object', () => {
  it('may be absent or any type of objects', () => {
    for (const type of [undefined, 'application/json', 'application/yaml; charset=utf-8'])
      expect(requireContentType(type)).to.equal(type)
  })
  it('may not be that of a patch', () => {
    expect(refusal(() => requireContentType('application/merge-patch+json'))).to.match(/^415 /)
  })
})
