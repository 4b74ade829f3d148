// Types of the API's operations, from the generated schema.
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";

// The paths that have an operation of a method.
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type Operation<P extends keyof paths, M extends Method> = M extends keyof paths[P] ? paths[P][M]
  : never;

type Content<R> = R extends { content: { "application/json": infer Body } } ? Body
  : R extends { content: infer Any } ? Any[keyof Any]
  : undefined;

type Success<R> = 200 extends keyof R ? Content<R[200]>
  : 201 extends keyof R ? Content<R[201]>
  : 202 extends keyof R ? Content<R[202]>
  : undefined;

export type Answer<P extends keyof paths, M extends Method> = Operation<P, M> extends
  { responses: infer R } ? Success<R> : never;

type Parameters<O> = O extends { parameters: infer X } ? X : object;

type Part<X, Name extends string> = Name extends keyof X ? X[Name] extends undefined ? object
  : undefined extends X[Name] ? { [K in Name]?: X[Name] }
  : { [K in Name]: X[Name] }
  : object;

export type Body<P extends keyof paths, M extends Method> = Operation<P, M> extends
  { requestBody: { content: infer C } } ? C[keyof C]
  : Operation<P, M> extends { requestBody?: { content: infer C } } ? C[keyof C]
  : never;

type BodyPart<P extends keyof paths, M extends Method> = [Body<P, M>] extends [never] ? object
  : { body: Body<P, M> | FormData };

export type Input<P extends keyof paths, M extends Method> =
  & Part<Parameters<Operation<P, M>>, "path">
  & Part<Parameters<Operation<P, M>>, "query">
  & BodyPart<P, M>;

export type Query<P extends PathOf<"get">> = Parameters<Operation<P, "get">> extends
  { query?: infer Q } ? NonNullable<Q> : never;
