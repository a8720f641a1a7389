-- An endpoint may take images.
ALTER TABLE models ADD COLUMN takes_images INTEGER NOT NULL DEFAULT 0;
-- The images of a message: a list of files in the workspace with their digests, under the session's content key.
ALTER TABLE messages ADD COLUMN images BLOB;
