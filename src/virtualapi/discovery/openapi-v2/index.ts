export { swaggerFiles, swaggerHead, type BuiltSwaggerIndex, type OpenApiV2Format } from './built-in.ts'
export { openApiV2Body, openApiV2Hash, type CustomResourceSet } from './document.ts'
export { encodeSwagger } from './swagger.ts'
