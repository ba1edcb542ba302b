export * from './field-selector.ts'
export * from './label-requirement.ts'
export * from './label-selector.ts'
export * from './parse-label-selector.ts'
